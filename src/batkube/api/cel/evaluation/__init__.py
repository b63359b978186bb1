"""Evaluation: compiled expressions, macros, and runtime cost."""
