"""Kubernetes' components, put on a world: kubelets, controllers, a scheduler. `run` and `serve` have the same ones."""
