"""Kubernetes components of a simulated cluster: kubelets, controllers and a scheduler, for `run` and `serve`."""
