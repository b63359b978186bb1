"""Latencies from recorded runs of real clusters: read them, split them into steps, fit each step, write the file."""
