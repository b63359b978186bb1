"""The Kubernetes API server: serves the simulated cluster to kubectl, client-go and other clients over HTTP."""
