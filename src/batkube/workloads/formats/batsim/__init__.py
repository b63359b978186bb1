"""Batsim: workload files, profiles, usage traces and DAX workflows."""
