"""Serving: the served custom kinds, and lifecycle, conditions and conversion of their definitions."""
