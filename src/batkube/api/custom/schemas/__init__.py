"""Schemas: structural schemas of custom resources, and their shapes, CEL types and size limits."""
