"""Batsim's protocol, its schedulers on a cluster, a real Batsim as the engine of a run, and our own Batsim.

* `protocol`: messages (version 4.1, JSON) and the sockets that carry them.
* `server`, `simgrid`, `state`: what Batsim does with messages. Its parts are actors that exchange messages in
  mailboxes, as in SimGrid; the order of Batsim's messages follows from that.
* `simulator`: our own Batsim (`batkube batsim`).
* `schedulers`: schedulers that speak the protocol, on a simulated cluster.
* `engine`: a real Batsim that executes the jobs of a run.
"""
