"""Definitions: defaults and validation of CustomResourceDefinitions."""
