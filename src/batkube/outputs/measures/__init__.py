"""Metrics of a run, computed from its files: frames, metrics, intervals, comparisons."""
