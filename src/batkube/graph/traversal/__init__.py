"""Traversal: searches a graph for the vertices of a request, with caches and match policies."""
