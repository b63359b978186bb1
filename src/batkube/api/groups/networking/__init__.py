"""Ingresses, network policies, addresses and address ranges of services."""
