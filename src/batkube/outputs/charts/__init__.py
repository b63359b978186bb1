"""Shared parts of all charts: colours, axes, ticks."""
