"""Profiles: computation and communication of jobs on a platform."""
