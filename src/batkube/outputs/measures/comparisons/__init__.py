"""Comparisons: runs side by side, where they diverge, and which may be compared at all."""
