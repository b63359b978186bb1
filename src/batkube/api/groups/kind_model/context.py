"""What strategies know beside the objects themselves."""

from __future__ import annotations

import msgspec

from batkube.cluster.store import Store
from batkube.kernel.instants import Instant


class StrategyContext(msgspec.Struct, frozen=True):
    """Who writes, when, and which store the object is for."""

    store: Store
    now: Instant
    #: The name, the groups and the uid of the user who writes.
    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    #: Where warnings for the client go.
    warnings: list[str] = []
