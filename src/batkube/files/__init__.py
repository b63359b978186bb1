"""Files: YAML and XML input, locks, private files, atomic replacement."""
