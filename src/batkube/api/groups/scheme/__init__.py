"""Scheme: the table of all built-in kinds, with defaulting, conversion, validation and printing."""
