"""The auditor of a run: at settled instants, what schedulers believe is compared with what is so.

Policies of ours are asked which pods they take to be where. kube-scheduler compares its cache itself. KubeFlux writes
what is wrong with its picture whenever it looks at it. Of all others it is known what follows from their decisions:
pods bound where there was no room are violations of the run, and pods that are left waiting while there is room are
told here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.pods import is_finished, node_of_pod
from batkube.cluster.resources import allocatable_of, demand_of
from batkube.cluster.scheduling_rules import NodeRules
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, after, instant_of, seconds
from batkube.kubeflux.audit import Auditor
from batkube.kubeflux.picture import NodeAccount
from batkube.policies.scheduler import PolicyScheduler

if TYPE_CHECKING:
    from batkube.programs.cache_comparison import CacheComparison

#: Where KubeFlux writes, in the folder of its files.
KUBEFLUX_FILE = "audit.jsonl"
LEFT_WAITING = "left waiting"
#: Looks are so much after every whole interval: what happens at round times has been answered by then.
_OFFSET = seconds("0.01")
_WRONG = FidelityNote("auditor", "what a scheduler believed of the cluster was not so; see audit.jsonl")
_SILENT = FidelityNote("auditor", "a scheduler did not compare its cache when it was asked to")


class RunAuditor:
    """Looks at every so many seconds of virtual time."""

    def __init__(
        self,
        world: World,
        interval: Duration,
        policy: PolicyScheduler | None,
        comparisons: Sequence[CacheComparison],
        folder: Path,
        *,
        is_outside: bool,
    ) -> None:
        """`folder` is that of the programs' files; `is_outside` says that programs schedule."""
        self._world = world
        self._interval = interval
        self._policy = policy
        self._comparisons = comparisons
        self._folder = folder
        self._is_outside = is_outside
        self._auditor = Auditor()
        self._waiting: set[Key] = set()
        self._lines: list[dict[str, object]] = []
        #: How often was looked, and how often a scheduler gave no answer.
        self.looks = 0
        self.silences = 0
        self._book(Instant(_OFFSET))

    def _book(self, now: Instant) -> None:
        self._world.agenda.book(after(now, self._interval), Rank.FINISH, self._look, is_routine=True)

    def _look(self, now: Instant) -> None:
        self.looks += 1
        if self._policy is not None:
            believed = _accounts(self._world, self._policy.believed_places())
            self._lines += self._auditor.look(believed, _accounts(self._world, self._true_places()), now)
        for comparison in self._comparisons:
            differences = comparison.ask(now)
            self.silences += differences is None
            self._lines += differences or ()
        if self._is_outside:
            self._look_for_waiting(now)
        self._book(now)

    def _true_places(self) -> dict[Key, str]:
        pods = self._world.store.all(POD).items()
        return {key: node_of_pod(pod) for key, pod in pods if node_of_pod(pod) and not is_finished(pod)}

    def _look_for_waiting(self, now: Instant) -> None:
        """Tell of pods that have waited since the last look at least, though there is room for them on some node."""
        store, free = self._world.store, self._free()
        current = set()
        for key, pod in store.all(POD).items():
            is_waiting = not node_of_pod(pod) and not is_finished(pod) and not pod["spec"].get("schedulingGates")
            if not is_waiting or instant_of(pod["metadata"]["creationTimestamp"]) > now - self._interval:
                continue
            node = _room_for(pod, store.all(NODE).values(), free)
            if node is not None:
                current.add(key)
                if key not in self._waiting:
                    line = {"kind": LEFT_WAITING, "node": node, "pod": str(key), "amounts": demand_of(pod)}
                    self._lines.append({**line, "at": now, "is": "new"})
        for key in sorted(self._waiting - current):
            self._lines.append({"kind": LEFT_WAITING, "node": "", "pod": str(key), "at": now, "is": "over"})
        self._waiting = current

    def _free(self) -> dict[str, dict[str, int]]:
        store = self._world.store
        free = {node["metadata"]["name"]: allocatable_of(node) for node in store.all(NODE).values()}
        for key, name in self._true_places().items():
            pod = store.get(POD, key)
            for resource, count in ({} if pod is None else demand_of(pod)).items():
                if name in free:
                    free[name][resource] = free[name].get(resource, 0) - count
        return free

    def lines(self) -> list[dict[str, object]]:
        """Return all that was found, in the order of time, with what KubeFlux wrote of itself."""
        from_kubeflux = [
            {**msgspec.json.decode(line), "scheduler": path.parent.name}
            for path in sorted(self._folder.rglob(KUBEFLUX_FILE))
            for line in path.read_bytes().splitlines()
        ]
        return sorted([*self._lines, *from_kubeflux], key=lambda line: int(str(line["at"])))

    def note(self) -> None:
        """Note what was found, for whoever reads the end of the run."""
        lines = [line for line in self.lines() if line.get("is", "new") == "new"]
        beliefs = [line for line in lines if line["kind"] != LEFT_WAITING]
        if beliefs:
            first = beliefs[0]
            example = " ".join(str(first[key]) for key in ("kind", "node", "pod", "what") if first.get(key))
            self._world.notes.add(_WRONG, example=example, count=len(beliefs))
        if self.silences:
            self._world.notes.add(_SILENT, example="SIGUSR2", count=self.silences)

    def write(self, path: Path) -> None:
        """Write all that was found, a line of JSON each; first how often was looked."""
        head: dict[str, object] = {"kind": "looks", "count": self.looks, "unanswered": self.silences}
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *self.lines())))


def _accounts(world: World, places: dict[Key, str]) -> dict[str, NodeAccount]:
    accounts: dict[str, NodeAccount] = {}
    for key, name in places.items():
        pod = world.store.get(POD, key)
        accounts.setdefault(name, NodeAccount()).held[key] = {} if pod is None else demand_of(pod)
    return accounts


def _room_for(pod: KubeObject, nodes: Iterable[KubeObject], free: dict[str, dict[str, int]]) -> str | None:
    """Return the first node that would take a pod, None if there is none."""
    rules, demand = NodeRules(pod["spec"]), demand_of(pod)
    for node in nodes:
        name: str = node["metadata"]["name"]
        left = free[name]
        if all(left.get(resource, 0) >= count for resource, count in demand.items()) and rules.objection(node) is None:
            return name
    return None
