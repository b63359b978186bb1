"""Selection of a run's external programs: by name, path or command line, with what they require."""
