"""Admission: what a cluster adds to objects, and what it refuses although they are valid."""
