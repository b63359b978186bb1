"""From a description to runs: the grid, the part of it that is wanted, and each run's name."""
