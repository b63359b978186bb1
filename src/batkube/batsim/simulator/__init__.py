"""Our Batsim simulator: platform, job execution, output files."""
