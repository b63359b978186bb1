"""Evaluation: compiled expressions, macros, and the cost that they are charged at run time."""
