"""Container rules: run time, exit code, resource usage and health of containers."""
