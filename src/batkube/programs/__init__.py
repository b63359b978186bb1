"""External programs of a run: selection, start-up, observation, and how time advances for them."""
