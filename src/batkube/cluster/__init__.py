"""The live Kubernetes side: the store of objects and the crossing between jobs and pods, machines and nodes."""
