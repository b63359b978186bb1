"""Record a live cluster as a workload and a platform that replay it."""
