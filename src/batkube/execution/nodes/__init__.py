"""Nodes: allocations, registration, leases, addresses, ports, devices and power."""
