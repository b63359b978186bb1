"""Batsim's server, which `simulator` and `schedulers` share: the messages to a scheduler, and its requests."""
