"""SimGrid platform files: machines, networks, routes, power states, units."""
