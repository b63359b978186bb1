"""A page of a live cluster: the changes are recorded, and served as a stream of deltas."""
