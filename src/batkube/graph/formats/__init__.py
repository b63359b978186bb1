"""Formats: reads resource graphs and writes matches."""
