"""Webhook calls during a request: building, deferring and decoding them."""
