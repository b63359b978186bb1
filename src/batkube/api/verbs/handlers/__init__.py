"""Request handlers: from an HTTP request about objects to its response."""
