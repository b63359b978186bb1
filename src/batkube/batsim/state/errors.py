"""What makes Batsim abort."""

from __future__ import annotations

from batkube.kernel.errors import RunFailed


class BatsimAbort(RunFailed):
    """The scheduler asked for what Batsim does not do; Batsim 4.2.1 aborts with these words."""
