"""Accounting: free units of every vertex, now and in the future."""
