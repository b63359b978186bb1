"""Charts of what goes on over time: states of machines, what is free, what waits."""
