"""Output folder of a run, which is complete or absent, and the files in it."""
