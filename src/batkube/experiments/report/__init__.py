"""The report of an experiment, section by section."""
