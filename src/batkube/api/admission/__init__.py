"""Admission control: plugins, policies and webhooks that change or reject writes of valid objects."""
