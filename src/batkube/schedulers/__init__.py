"""Programs of the Kubernetes ecosystem, built from source: schedulers and control-plane components."""
