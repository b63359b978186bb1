"""Batsim's protocol: events, their JSON, ZeroMQ sockets, and the process at the other end."""
