"""Decode JSON and YAML as Go does, and convert values to the canonical form of their Go types."""
