"""Formats: resource graphs read, matches written."""
