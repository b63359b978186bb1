"""Patches: JSON Patch, JSON merge patch and strategic merge patch."""
