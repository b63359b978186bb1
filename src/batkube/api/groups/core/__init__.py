"""The core group: pods, services, volumes, nodes, namespaces and the small kinds around them."""
