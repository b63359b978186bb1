"""Runtime: connects a policy to the store, and applies its decisions."""
