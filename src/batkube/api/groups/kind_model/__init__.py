"""Kind model: how a built-in kind is declared, with strategy, defaults, warnings and CEL expressions."""
