"""The page of runs: what happened on which node at any instant, as one HTML file or served on loopback."""
