"""Results of an experiment: writing the tables, and reading them back."""
