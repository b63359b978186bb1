"""Kubelets: admission, start, resize and termination of the pods bound to each node, and failed nodes."""
