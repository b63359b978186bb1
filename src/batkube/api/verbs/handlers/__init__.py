"""Handlers of requests about objects."""
