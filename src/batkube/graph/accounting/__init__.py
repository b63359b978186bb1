"""Accounting: what is free on each vertex, now and later."""
