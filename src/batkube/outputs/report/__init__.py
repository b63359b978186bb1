"""The report of one run, section by section."""
