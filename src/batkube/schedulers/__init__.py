"""Real programs of the Kubernetes ecosystem, built from source: schedulers, and programs to compare them with."""
