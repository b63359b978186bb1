"""Estimation: upper bounds for the cost of an expression, computed before it is evaluated."""
