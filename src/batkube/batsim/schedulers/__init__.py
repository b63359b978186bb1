"""Schedulers that use Batsim's protocol, on a simulated cluster (`batkube run --scheduler batsim:…`)."""
