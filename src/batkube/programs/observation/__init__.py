"""Observation of external programs: failed attempts, events, binding conflicts."""
