"""The built-in kinds, by group as upstream has them: defaults, checks, columns, warnings and strategy of each."""
