"""Volumes: binding, matching, protection and ephemeral claims."""
