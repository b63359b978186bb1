"""Container validation: containers with their probes, environment, volumes and security contexts."""
