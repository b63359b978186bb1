"""Virtual time for other programs: they share the run's clock, which moves only when all of them are idle."""
