"""Kubelet: admission, start, resizes and end of the pods bound to each node, and nodes that failed."""
