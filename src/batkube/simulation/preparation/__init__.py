"""Preparation: the inputs of a run, read and validated before it starts."""
