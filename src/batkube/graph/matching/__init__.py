"""Matching: the matcher, allocations and their cancellation, changes of the graph."""
