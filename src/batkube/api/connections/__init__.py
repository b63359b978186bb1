"""Connections: bytes of clients in and out, within bounds; who moves them depends on how time goes on."""
