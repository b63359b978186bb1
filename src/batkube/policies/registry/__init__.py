"""Registry: policies by name or from a file, their arguments and checks."""
