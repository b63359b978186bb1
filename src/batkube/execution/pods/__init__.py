"""Pods: the kubelet's state of a pod and its containers, and the status that it reports."""
