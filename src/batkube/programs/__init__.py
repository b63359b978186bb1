"""Outside programs of a run: which ones, how they are started, and how time goes on for them."""
