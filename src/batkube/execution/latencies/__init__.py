"""Latencies: what a real cluster adds to the ideal one."""
