"""Recording: what happens on a live cluster, as a workload and a platform that replay it."""
