"""Kind model: the declaration of a built-in kind, with strategy, defaults, warnings and CEL expressions."""
