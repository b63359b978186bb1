"""Readers and writers of workload files, grouped by origin."""
