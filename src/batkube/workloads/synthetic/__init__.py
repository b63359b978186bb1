"""Synthetic workloads: generators and the recipes that describe them."""
