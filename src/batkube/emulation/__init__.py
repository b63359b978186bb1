"""Play workloads on a real cluster in real time, and run a real control plane on this machine for it."""
