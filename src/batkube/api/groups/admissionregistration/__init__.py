"""Webhooks and policies of admission, which are kept and not called."""
