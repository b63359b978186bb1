"""Pods: a kubelet's record of a pod and its containers, and the status it reports."""
