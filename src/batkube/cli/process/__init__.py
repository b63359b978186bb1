"""Process: exit codes, signals, standard streams, logging."""
