"""API group apps: Deployments, ReplicaSets, StatefulSets, DaemonSets and their revisions."""
