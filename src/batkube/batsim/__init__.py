"""Batsim in three roles, and what they share.

* `simulator`: our own Batsim (`batkube batsim`).
* `engine`: a real Batsim that executes the jobs of a run.
* `schedulers`: schedulers that use Batsim's protocol, on a simulated cluster.

No role imports another. All share `protocol` (messages and sockets). `simulator` and `schedulers` also share `server`
(what Batsim sends to schedulers, and how it handles their requests), `state` (jobs and machines) and `simgrid` (actors
in SimGrid's order, from which the order of Batsim's messages follows).
"""
