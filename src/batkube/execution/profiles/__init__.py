"""Profiles: computation and communication of jobs on a platform, and their energy."""
