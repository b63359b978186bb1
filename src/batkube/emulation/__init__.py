"""Run workloads on a real cluster in real time, or on a real control plane on this machine."""
