"""Estimation: upper bounds for the cost of an expression, known before it is evaluated."""
