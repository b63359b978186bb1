"""Batsim's protocol (shared by all roles): messages, their JSON, ZeroMQ sockets, and the process of the peer."""
