"""Nodes: heartbeats, machines, resource usage and scheduling constraints."""
