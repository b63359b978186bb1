"""The simulated cluster's state: the store of objects, the mapping of jobs to pods and of machines to nodes."""
