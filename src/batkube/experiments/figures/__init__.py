"""Charts of an experiment: first computed, then drawn."""
