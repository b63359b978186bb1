"""Persistent volumes and claims, and the sources of volumes that pods name too."""
