"""Shell scripts of containers: how long they take and their exit codes, determined without executing them."""
