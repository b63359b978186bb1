"""Dynamic admission: policies and webhooks that users configure."""
