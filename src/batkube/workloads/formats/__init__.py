"""Readers and writers of workload files, by origin."""
