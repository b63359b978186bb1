"""Processes: programs attached to the run's clock, their logs and mounts."""
