"""Pods: fields, resources, ports, device claims and usage."""
