"""State of a simulated Batsim: jobs, machines, options, progress."""
