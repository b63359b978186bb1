"""Batsim's server: what it reports to a scheduler, and what it does for one."""
