"""Charts of an experiment: computed first, drawn then."""
