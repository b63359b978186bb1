"""Client: HTTP connection to a real cluster, its watches, and polling."""
