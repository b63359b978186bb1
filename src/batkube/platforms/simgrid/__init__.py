"""SimGrid platform files: machines, network, routes, power states, units."""
