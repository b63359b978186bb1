"""Webhook calls in the middle of a request: building, deferring and decoding them."""
