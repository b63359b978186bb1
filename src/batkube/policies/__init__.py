"""Scheduling algorithms of ours, run in-process, and the small interface to write one's own."""
