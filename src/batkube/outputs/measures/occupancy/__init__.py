"""Occupancy: which machines were in use, absent or free, and how many jobs waited, over time."""
