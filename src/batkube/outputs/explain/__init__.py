"""Explanations of a finished run: why jobs waited, where they ran and why, and how nodes were used."""
