"""Schedulers of ours on any cluster: a mirror of its nodes and pods, who decides on it, and writes to the real one."""
