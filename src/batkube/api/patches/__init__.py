"""Patches: documents that say how an object is to change, and what comes of them."""
