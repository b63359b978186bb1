"""Workloads: jobs and their profiles, read from traces and manifests, converted, generated and summarised."""
