"""Matching: matches requests, books them, and cancels or updates the resources of jobs."""
