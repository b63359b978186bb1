"""The run's clock for programs in Python."""
