"""Connections of `serve`: asyncio sockets, timeouts, and fair sharing of the server's thread."""
