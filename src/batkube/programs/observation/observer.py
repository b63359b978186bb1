"""Observes outside programs: failed attempts to place pods, and connections other than those to the run's server.

What a scheduler decides is in its writes (`cluster.decisions`); its failed attempts are what it logs (see `attempts`).
Its events are counted and then removed: nobody in a run watches them, and a long run would make millions.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.mapping import NAMESPACE, POD
from batkube.cluster.object_meta import condition_of
from batkube.cluster.store import DELETED, MODIFIED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Instant
from batkube.timing.coordinator import Acceptor
from batkube.timing.processes.attached_process import AttachedProcess

EVENTS = "events"
_FAILED = "FailedScheduling"
_UNLOGGED = FidelityNote(
    "attempts", "the scheduler logs no failed attempts that are understood; there may be more than its events show"
)
_FOREIGN_CONNECTIONS = FidelityNote(
    "virtual time", "a program connected to others than the run's server; time may go on while it waits for them"
)
_REAL_TIME = FidelityNote("virtual time", "a program uses what keeps real time; when that ends does not follow the run")
_INTRUDERS = FidelityNote(
    "connections", "others than the program connected to its port and were turned away; nothing they sent has counted"
)
_FOREIGN_CLIENTS = FidelityNote(
    "connections",
    "others than the run's server spoke to a program, at a port of its own; that may have changed its course",
)
_CRASHED = FidelityNote("programs", "a program ended by itself, and the run with it; outputs end at that instant")
_LOG_CUT = FidelityNote(
    "log", "the rest of what a program logged could not be written to its log.txt; no result depends on that file"
)
_UNGUARDED = FidelityNote(
    "connections",
    "the kernel does not tell who connects to a program's port; any process of this machine could have taken part",
)
_NONDETERMINISM = FidelityNote(
    "repeatability",
    "something in a program depended on the machine (uncounted bytes, or memory in use); another run may differ",
)


class ProgramObserver:
    """Listens to pods and events."""

    def __init__(self, world: World) -> None:
        self._store = store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        #: Failed attempts to place each live pod, as its scheduler logs them, and why the last one failed.
        self._failures: dict[Key, tuple[int, str]] = {}
        #: The same as far as the API shows it, of schedulers that log nothing that is understood.
        self._reasons: dict[Key, tuple[int, str]] = {}
        self._events_to_remove: list[Key] = []
        #: How much has happened; a scheduler that only keeps itself busy does not move it.
        self.activity = 0
        store.subscribe(POD, self._on_pods_changed)
        store.subscribe(EVENTS, self._on_events_changed)

    def record_activity(self) -> None:
        """Take note that something happened that programs may answer."""
        self.activity += 1

    def pop_attempts(self, key: Key) -> tuple[int, str]:
        """Return how often placing a pod failed, and why the last time; forget it."""
        seen = self._reasons.pop(key, None)
        logged = self._failures.pop(key, None)
        if seen is not None and logged is None:
            self._notes.add(_UNLOGGED, example=f"pod {_name(key)}")
        return logged or seen or (0, "")

    def record_attempt(self, key: Key, why: str, at: Instant) -> None:
        """Take note of a failed attempt that a scheduler has logged."""
        count = self._failures.get(key, (0, ""))[0] + 1
        self._failures[key] = (count, why)
        self._journal.append(at, "attempt", pod=_name(key), failed=count)

    def note_foreign_connections(self, program: str, connects: int, foreign_bytes: int) -> None:
        """Take note that a program has connected, so many times, to somebody who is not on the run's clock.

        `foreign_bytes` is how much it read from them, and from processes that connected to it.
        """
        if connects > 0:
            self._notes.add(_FOREIGN_CONNECTIONS, example=program, count=connects)
        elif foreign_bytes > 0:
            self._notes.add(_FOREIGN_CLIENTS, example=program)

    def note_nondeterminism(self, program: str) -> None:
        """Record that something in a program may differ in another run (`timing.coordinator.Attachment.is_repeatable`)."""
        self._notes.add(_NONDETERMINISM, example=program)

    def note_real_time_use(self, program: str, uses: Sequence[str]) -> None:
        """Take note of what a program used that cannot be had on the run's clock."""
        for use in uses:
            self._notes.add(_REAL_TIME, example=f"{program}: {use}")

    def note_end(self, process: AttachedProcess) -> None:
        """Note that a program ended while the run needed it, and that its log file is incomplete."""
        if process.crash:
            self._notes.add(_CRASHED, example=f"{process.name} {process.crash}")
        if process.log.copy_error:
            self._notes.add(_LOG_CUT, example=f"{process.name}: {process.log.copy_error}")

    def note_intruders(self, program: str, connects: int, listener: Acceptor) -> None:
        """Take note of who else called the port of a program that itself has connected at least `connects` times."""
        not_its_own = listener.rejected + max(0, listener.closed_unidentified - max(0, connects - listener.accepted))
        if not_its_own:
            self._notes.add(_INTRUDERS, example=program, count=not_its_own)
        if not listener.can_identify_program:
            self._notes.add(_UNGUARDED, example=program)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        self.activity += 1
        if batch.type is not MODIFIED:
            return
        for change in batch.changes():
            why = _unschedulable_reason(change.object)
            if why and change.previous is not None and why != _unschedulable_reason(change.previous):
                self._journal.append(now, "unschedulable", pod=_name(change.key), reason=why)
                self._record_visible_failure(change.key, why, 1)

    def _record_visible_failure(self, key: Key, why: str, count: int) -> None:
        """Take note that a pod was tried at least `count` times in vain."""
        before, _ = self._reasons.get(key, (0, ""))
        self._reasons[key] = (max(before, count), why)

    def _on_events_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            return
        for change in batch.changes():
            self._record_event(change.object)
            self._events_to_remove.append(change.key)
        if len(self._events_to_remove) == len(batch.keys):
            self._agenda.book(now, Rank.RECONCILE, self._remove_events)

    def _record_event(self, event: KubeObject) -> None:
        if event.get("reason") != _FAILED:
            return
        about = event.get("involvedObject") or event.get("regarding") or {}
        key = Key(f"{about.get('namespace', NAMESPACE)}/{about.get('name', '')}")
        # Clients tell of a series of events minutes after it: by then another pod may have the name.
        pod = self._store.get(POD, key)
        if pod is not None and about.get("uid", pod["metadata"]["uid"]) == pod["metadata"]["uid"]:
            self._record_visible_failure(key, str(event.get("message") or event.get("note") or ""), _occurrences(event))

    def _remove_events(self, now: Instant) -> None:
        keys = list(dict.fromkeys(self._events_to_remove))
        self._events_to_remove.clear()
        self._store.delete(EVENTS, self._store.existing(EVENTS, keys), now)


def _name(key: Key) -> str:
    return key.removeprefix(f"{NAMESPACE}/")


def _unschedulable_reason(pod: KubeObject) -> str:
    """Return why a pod could not be placed, as its condition says; nothing if it does not."""
    condition = condition_of(pod, "PodScheduled")
    return "" if condition is None or condition["status"] != "False" else str(condition.get("message", ""))


def _occurrences(event: KubeObject) -> int:
    series = event.get("series") or {}
    return max(int(series.get("count", 0)), int(event.get("count") or event.get("deprecatedCount") or 0), 1)
