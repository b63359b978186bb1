"""The runs of an experiment: the grid, a selected part of it, and each run's name."""
