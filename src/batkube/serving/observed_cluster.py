"""What an observer of a served cluster, such as its page, may use from another thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from batkube.cluster.kinds import KindTable
from batkube.cluster.mapping import NODE
from batkube.cluster.pods.usage import LoadState, PodUsage
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.kernel.instants import Instant
from batkube.serving.event_loop_calls import EventLoopCalls
from batkube.serving.served_clock import ServedClock


class ApiAccess(NamedTuple):
    """The address of the API, its certificate authority (PEM) and its administrator's token."""

    url: str
    authority: str
    token: str
    kinds: KindTable


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """A served cluster. Its world may be read and subscribed to where the observer is called, and not changed."""

    world: World
    api: ApiAccess
    #: None if a program takes part that has the machine's clock.
    clock: ServedClock | None
    #: Container usage; None if only the API is served.
    usage: PodUsage | None
    calls: EventLoopCalls

    def fail_node(self, name: str) -> str:
        """Let a node fail, and return a remark if that has no effect: its kubelet stops, as in a power failure."""
        return self._change_heartbeats(name, is_failure=True)

    def restore_node(self, name: str) -> str:
        """Let a failed node return, and return a remark if that has no effect."""
        return self._change_heartbeats(name, is_failure=False)

    def _change_heartbeats(self, name: str, *, is_failure: bool) -> str:
        world = self.world
        change: Callable[[str, Instant], None] = world.heartbeats.stop if is_failure else world.heartbeats.resume

        def run(now: Instant) -> str:
            if world.store.get(NODE, Key(name)) is None:
                return f'nodes "{name}" not found'
            if (name in world.heartbeats.silent) is is_failure:
                return f"node {name} has {'failed already' if is_failure else 'not failed'}"
            change(name, now)
            return ""

        return self.calls.call(run)

    def loads(self) -> list[LoadState]:
        """Return the loads of the rules."""
        usage = self.usage
        return [] if usage is None else self.calls.call(usage.loads)

    def set_load(self, rule: str, millicores: int) -> bool:
        """Let a load have another amount from now on; return False if no rule with a load is at this place."""
        usage = self.usage
        return usage is not None and self.calls.call(lambda now: usage.set_load(rule, millicores, now))
