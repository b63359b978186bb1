"""Formats of workload files, by origin."""
