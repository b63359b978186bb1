"""The timeline of a run: tracks with slices, marks and counters, for any trace viewer."""
