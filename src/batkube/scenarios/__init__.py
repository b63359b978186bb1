"""Scenarios: the description of one run, before any input is read and any program is built or started."""
