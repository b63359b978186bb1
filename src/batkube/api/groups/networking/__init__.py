"""Ingresses, NetworkPolicies, ServiceCIDRs and IPAddresses."""
