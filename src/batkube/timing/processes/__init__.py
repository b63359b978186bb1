"""Processes of attached programs, their logs and mounts."""
