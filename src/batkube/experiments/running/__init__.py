"""Execution of a plan's runs in worker processes or on a cluster, each run in its own folder."""
