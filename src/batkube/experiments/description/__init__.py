"""The experiment file, read and checked: axes, seeds, figures."""
