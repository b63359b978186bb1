"""Pods and pod templates."""
