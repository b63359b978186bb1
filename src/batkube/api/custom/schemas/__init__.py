"""Schemas: structural schemas of custom resources, with their CEL types and size limits."""
