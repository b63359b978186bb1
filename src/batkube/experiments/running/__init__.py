"""The runs of a plan, done in worker processes, each into a folder of its own."""
