"""Authentication, authorization and access reviews."""
