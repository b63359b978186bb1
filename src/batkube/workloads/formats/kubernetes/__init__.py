"""Kubernetes: manifests, audit logs and pod lists as workloads."""
