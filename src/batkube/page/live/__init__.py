"""A page that follows a cluster: it records what changes, and serves that as a stream of deltas."""
