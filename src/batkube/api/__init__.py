"""The Kubernetes API over HTTP: what kubectl, client-go and every other client see of the cluster."""
