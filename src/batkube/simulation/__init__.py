"""Scenarios, their assembly, and the loop that runs them."""
