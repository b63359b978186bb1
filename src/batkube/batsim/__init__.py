"""Batsim's protocol, and a Batsim of our own that speaks it.

`messages` are the protocol's words (version 4.1, JSON), `text` and `reading` how Batsim writes and reads them, `socket`
the one module that sends them anywhere. `server`, `deeds`, `conversation`, `sources` and `execution` are what Batsim
does with them, as actors that meet in a mailbox (`actors`): the order of its messages follows from just that.
"""
