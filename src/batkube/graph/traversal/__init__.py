"""Traversal: finds the vertices for a request, with caches and match policies."""
