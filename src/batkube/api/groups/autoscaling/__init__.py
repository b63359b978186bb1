"""Horizontal pod autoscalers, in two versions, and scales."""
