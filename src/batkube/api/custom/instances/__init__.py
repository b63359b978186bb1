"""Instances: pruning, defaulting, validation and printing of custom objects."""
