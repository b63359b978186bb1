"""Text: Go's formats of values and times, label syntax, suggestions for misspelt names, terminals."""
