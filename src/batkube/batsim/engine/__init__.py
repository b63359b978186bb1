"""A real Batsim as the engine of a run."""
