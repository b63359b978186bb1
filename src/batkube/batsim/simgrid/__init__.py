"""SimGrid's actors: simcalls, rounds, mailboxes and signals in SimGrid's order."""
