"""Schedulers that speak Batsim's protocol and decide for a simulated cluster."""
