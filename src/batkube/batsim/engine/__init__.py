"""A real Batsim that executes the jobs of a run (`batkube run --engine batsim`)."""
