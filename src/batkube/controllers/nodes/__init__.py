"""Nodes: lifecycle, rate of eviction, eviction by taints."""
