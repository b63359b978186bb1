"""Custom resources: definitions, the kinds they make, and what is done to instances before they are stored."""
