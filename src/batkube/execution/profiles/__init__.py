"""Profiles: how long jobs compute and communicate on a platform, and the energy that takes."""
