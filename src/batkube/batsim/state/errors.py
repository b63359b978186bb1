"""The error for requests on which Batsim aborts."""

from __future__ import annotations

from batkube.kernel.errors import RunFailed


class BatsimAbort(RunFailed):
    """The scheduler sent a request on which Batsim 4.2.1 aborts; where Batsim has a message, it is this one."""
