"""Real clients of the served API: kubectl, helm and the Python client."""
