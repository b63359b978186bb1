"""Latencies: the delays and system pods that a real cluster adds to the ideal one."""
