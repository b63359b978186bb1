"""The built-in kinds by API group: defaults, validation, columns, warnings and strategy of each kind."""
