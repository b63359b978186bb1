"""Workload jobs: submission, work, deadlocks and outcomes."""
