"""Connections of `serve`: asyncio sockets, timeouts, and fair queuing of requests."""
