"""Time: the event loop, and virtual time for attached programs, whose shared clock moves only when all are idle."""
