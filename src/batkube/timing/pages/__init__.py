"""Clock pages: memory shared with programs under virtual time, and how idleness is detected."""
