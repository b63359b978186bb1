"""Run our schedulers on a live cluster: they decide on a mirror of its nodes and pods, and write to the cluster."""
