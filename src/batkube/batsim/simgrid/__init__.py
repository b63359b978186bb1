"""Imitates SimGrid's kernel: actors, simcalls, mailboxes and signals in SimGrid's order (shared by all roles)."""
