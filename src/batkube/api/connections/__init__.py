"""Client connections: HTTP and TLS over asyncio (`event_loop`, for `serve`) or polled sockets (`polled`, for runs)."""
