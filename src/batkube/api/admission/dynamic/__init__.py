"""Dynamic admission: user-defined policies and webhooks."""
