"""Scheme: the table of all built-in kinds, and their defaulting, conversion, validation and printing."""
