"""Foundations that every other package uses: time, event order, randomness, errors, the journal."""
