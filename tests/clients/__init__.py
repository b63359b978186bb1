"""Real clients of the API, used as people use them: kubectl and the Python client."""
