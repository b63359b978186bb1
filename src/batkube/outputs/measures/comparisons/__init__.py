"""Comparisons of runs: metrics side by side, first divergence, comparability."""
