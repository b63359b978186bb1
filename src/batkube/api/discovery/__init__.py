"""Discovery: the paths that tell of the server itself, not of objects."""
