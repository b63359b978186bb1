"""Timeline: events that happen to the cluster, such as node failures, and when."""
