"""Audit a run: compare, at settled instants, the caches of its schedulers with the cluster.

* In-process policies report the pods that they assume on each node.
* kube-scheduler compares its cache itself, on SIGUSR2
  (Kubernetes: pkg/scheduler/backend/cache/debugger/debugger.go).
* KubeFlux writes its graph and the differences that it knows to files (`kubeflux_audit`).
* For all other schedulers, only decisions can be checked: a pod that is bound to a node without free capacity is a
  violation of the run, and a pod that stays pending although a node has free capacity is reported here.

An instant is settled if nothing has changed for a moment, so that all watchers have received all changes: programs in
virtual time receive watch events with a delay of up to a millisecond. Each difference has one line in the journal when
it first occurs, and another one when it disappears.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.nodes.constraints import NodeConstraints
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.resources import add_amounts, allocatable_of, demand_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, after, instant_of, seconds
from batkube.kubeflux.audit import Auditor, cache_differences
from batkube.kubeflux.scheduler_cache import NodeAccount, SchedulerCache
from batkube.policies.runtime.policy_scheduler import PolicyScheduler
from batkube.simulation.parts.kubeflux_audit import AuditLine, KubeFluxAuditReader

if TYPE_CHECKING:
    from batkube.programs.cache_comparison import CacheComparison

#: The file in which KubeFlux writes differences, in its own folder.
KUBEFLUX_FILE = "audit.jsonl"
LEFT_WAITING = "left waiting"
#: The delay of checks after every interval: schedulers have then handled the changes at round times.
_CHECK_OFFSET = seconds("0.01")
#: The time without changes before a settled instant, and the number of attempts to find one.
_SETTLE_TIME, _MAX_RETRIES = seconds("0.005"), 100
_WRONG_BELIEF = FidelityNote("auditor", "the cache of a scheduler differed from the cluster; see audit.jsonl")
_NO_ANSWER = FidelityNote("auditor", "a scheduler did not compare its cache although it was requested to")


class RunAuditor:
    """Checks the schedulers at a fixed interval of virtual time."""

    def __init__(
        self,
        world: World,
        interval: Duration,
        policy: PolicyScheduler | None,
        comparisons: Sequence[CacheComparison],
        folder: Path,
        *,
        has_external_scheduler: bool,
    ) -> None:
        """`folder` has the programs' files; `has_external_scheduler` means that external programs schedule."""
        self._world = world
        self._interval = interval
        self._policy = policy
        self._comparisons = comparisons
        self._folder = folder
        self._has_external_scheduler = has_external_scheduler
        self._auditor = Auditor()
        self._kubeflux_readers: dict[Path, KubeFluxAuditReader] = {}
        self._waiting: dict[Key, Instant] = {}
        self._lines: list[AuditLine] = []
        #: The number of checks, of missing replies of schedulers, and of checks skipped for lack of a settled instant.
        self.check_count = 0
        self.unanswered_count = 0
        self.unsettled_count = 0
        self._changed_at = Instant(0)
        for kind in (NODE, POD):
            world.store.subscribe(kind, self._on_changed)
        self._book_check(Instant(_CHECK_OFFSET), Instant(_CHECK_OFFSET))

    def _on_changed(self, batch: Batch, now: Instant) -> None:
        self._changed_at = now

    def _book_check(self, due: Instant, now: Instant) -> None:
        """Book the check after the one at `due`."""
        while due <= now:
            due = after(due, self._interval)

        def check_when_settled(now: Instant) -> None:
            if now - self._changed_at >= _SETTLE_TIME:
                self.check_count += 1
                self._check(now)
            elif now - due < _MAX_RETRIES * _SETTLE_TIME:
                self._world.agenda.book(after(now, _SETTLE_TIME), Rank.FINISH, check_when_settled, is_routine=True)
                return
            else:
                self.unsettled_count += 1
            self._book_check(due, now)

        self._world.agenda.book(due, Rank.FINISH, check_when_settled, is_routine=True)

    def _check(self, now: Instant) -> None:
        if self._policy is not None:
            cached = _node_accounts(self._world, self._policy.assumed_nodes())
            actual = _node_accounts(self._world, self._actual_places())
            self._record(self._auditor.update(set(cache_differences(cached, actual)), now), now)
        for comparison in self._comparisons:
            mismatches = comparison.run(now)
            self.unanswered_count += mismatches is None
            self._record(mismatches or (), now)
        if self._has_external_scheduler:
            self._check_kubeflux(now)
            self._check_left_waiting(now)

    def _check_kubeflux(self, now: Instant) -> None:
        paths = sorted(self._folder.rglob(KUBEFLUX_FILE))
        if not paths:
            return
        store = self._world.store
        actual = SchedulerCache.build(store.all(NODE).values(), store.all(POD).values()).accounts
        for path in paths:
            self._record(self._kubeflux_readers.setdefault(path, KubeFluxAuditReader(path)).check(actual, now), now)

    def _record(self, lines: Iterable[Mapping[str, Any]], now: Instant) -> None:
        """Keep lines for audit.jsonl, and write each to the journal."""
        for line in lines:
            self._lines.append(dict(line))
            is_over = line.get("is") == "over"
            fields = {key: str(line[key]) for key in ("kind", "scheduler", "node", "pod", "what") if line.get(key)}
            amounts = " ".join(f"{name}={count}" for name, count in line.get("amounts", {}).items())
            fields |= {"amounts": amounts} if amounts else {}
            since = line["since"] if is_over else line["at"]
            self._world.journal.append(now, "agree" if is_over else "differ", **fields, since=since)

    def _actual_places(self) -> dict[Key, str]:
        pods = self._world.store.all(POD).items()
        return {key: node_of_pod(pod) for key, pod in pods if node_of_pod(pod) and not is_finished(pod)}

    def _check_left_waiting(self, now: Instant) -> None:
        """Report pods that have been pending since the previous check although they would fit on some node."""
        store, free = self._world.store, self._free_resources()
        current: set[Key] = set()
        lines: list[AuditLine] = []
        for key, pod in store.all(POD).items():
            is_waiting = not node_of_pod(pod) and not is_finished(pod) and not pod["spec"].get("schedulingGates")
            if not is_waiting or instant_of(pod["metadata"]["creationTimestamp"]) > now - self._interval:
                continue
            node = _first_fitting_node(pod, store.all(NODE).values(), free)
            if node is not None:
                current.add(key)
                if key not in self._waiting:
                    self._waiting[key] = now
                    line: AuditLine = {"kind": LEFT_WAITING, "node": node, "pod": str(key), "amounts": demand_of(pod)}
                    lines.append({**line, "at": now, "is": "new"})
        for key in sorted(self._waiting.keys() - current):
            line = {"kind": LEFT_WAITING, "node": "", "pod": str(key), "at": now, "is": "over"}
            lines.append({**line, "since": self._waiting.pop(key)})
        self._record(lines, now)

    def _free_resources(self) -> dict[str, dict[str, int]]:
        store = self._world.store
        free = {node["metadata"]["name"]: allocatable_of(node) for node in store.all(NODE).values()}
        for key, name in self._actual_places().items():
            pod = store.get(POD, key)
            if pod is not None and name in free:
                add_amounts(free[name], demand_of(pod), -1)
        return free

    def lines(self) -> list[AuditLine]:
        """Return all differences in order of time."""
        return sorted(self._lines, key=lambda line: int(line["at"]))

    def finish(self, now: Instant) -> None:
        """Read the last reports of KubeFlux, and add fidelity notes on the differences."""
        for path in sorted(self._folder.rglob(KUBEFLUX_FILE)):
            self._record(self._kubeflux_readers.setdefault(path, KubeFluxAuditReader(path)).read_new_lines(), now)
        lines = [line for line in self.lines() if line.get("is", "new") == "new"]
        cache_lines = [line for line in lines if line["kind"] != LEFT_WAITING]
        if cache_lines:
            first = cache_lines[0]
            example = " ".join(str(first[key]) for key in ("kind", "node", "pod", "what") if first.get(key))
            self._world.notes.add(_WRONG_BELIEF, example=example, count=len(cache_lines))
        if self.unanswered_count:
            self._world.notes.add(_NO_ANSWER, example="SIGUSR2", count=self.unanswered_count)

    def write(self, path: Path) -> None:
        """Write all differences as lines of JSON, after a line with the number of checks."""
        head: dict[str, object] = {
            "kind": "looks",
            "count": self.check_count,
            "unanswered": self.unanswered_count,
            "unsettled": self.unsettled_count,
        }
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *self.lines())))


def _node_accounts(world: World, places: dict[Key, str]) -> dict[str, NodeAccount]:
    accounts: dict[str, NodeAccount] = {}
    for key, name in places.items():
        pod = world.store.get(POD, key)
        accounts.setdefault(name, NodeAccount()).held[key] = {} if pod is None else demand_of(pod)
    return accounts


def _first_fitting_node(pod: KubeObject, nodes: Iterable[KubeObject], free: dict[str, dict[str, int]]) -> str | None:
    """Return the first node on which a pod fits, or None."""
    rules, demand = NodeConstraints(pod["spec"]), demand_of(pod)
    for node in nodes:
        name: str = node["metadata"]["name"]
        left = free[name]
        if (
            all(left.get(resource, 0) >= count for resource, count in demand.items())
            and rules.rejection_reason(node) is None
        ):
            return name
    return None
