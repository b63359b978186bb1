"""Shared by all controllers: work queue, owner index, creation and deletion of pods."""
