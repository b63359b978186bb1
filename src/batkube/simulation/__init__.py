"""One run: its inputs read and checked, its parts put together, its end and its files."""
