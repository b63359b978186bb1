"""Deployments, ReplicaSets, StatefulSets and DaemonSets."""
