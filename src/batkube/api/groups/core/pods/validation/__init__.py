"""Validation: specification, status, resize and update of pods."""
