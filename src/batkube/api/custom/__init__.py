"""Custom resources: CustomResourceDefinitions, the kinds that they define, and their objects."""
