"""Validation of containers: probes, environment, volumes and security contexts."""
