"""Real programs of the Kubernetes world, built from their own source: schedulers, and what they are compared with."""
