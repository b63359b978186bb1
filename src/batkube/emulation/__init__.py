"""Real clusters: the same workloads played on them in real time, and a real control plane of one's own to do it on."""
