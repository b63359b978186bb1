"""Time, order, chance and record: what every other layer stands on."""
