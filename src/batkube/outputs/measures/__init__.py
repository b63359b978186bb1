"""A run's files, read back and counted: frames, metrics, intervals, comparisons."""
