"""Serving: the custom kinds that are served now, their conditions, life cycle and conversion."""
