"""Paths about the server itself: discovery, health, version and metrics."""
