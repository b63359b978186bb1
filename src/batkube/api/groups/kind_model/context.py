"""The context of a write, for strategies that need more than the objects."""

from __future__ import annotations

import msgspec

from batkube.cluster.store import Store
from batkube.kernel.instants import Instant


class StrategyContext(msgspec.Struct, frozen=True):
    """The user, the time, and the store of a write."""

    store: Store
    now: Instant
    #: The user's name, groups and uid.
    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    #: The list to which warnings for the client are appended.
    warnings: list[str] = []
