"""Garbage collection: the owner graph, namespaces, quotas, expired events."""
