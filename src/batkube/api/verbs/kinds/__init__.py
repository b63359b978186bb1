"""Served kinds: their behaviour, versions and encoding."""
