"""The core group: pods, services, volumes, nodes, namespaces and smaller kinds."""
