"""Containers: what they run, their probes, restarts and termination."""
