"""Validation of pods: spec, status, resize and update."""
