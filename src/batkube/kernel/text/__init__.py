"""Text: Go's formats of values and times, label syntax, numbers, suggestions for misspelt names."""
