"""Requests: jobspecs, their constraints, and the compiled form that walks use."""
