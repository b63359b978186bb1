"""Deployments, replica sets, stateful sets, daemon sets."""
