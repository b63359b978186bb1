"""Output: the text that commands print."""
