"""Observes external programs: failed scheduling attempts, and connections with other peers than the run's server.

Decisions are observed in `cluster.decisions`, failed attempts in logs (`failed_attempts`). Events are counted and then
removed: no client of a run watches them, and a long run would create millions.
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
_UNPARSED_LOG = FidelityNote(
    "attempts", "the scheduler does not log failed attempts in a known format; there may be more than its events show"
)
_OTHER_SERVERS = FidelityNote(
    "virtual time", "a program connected to other servers than the run's; time may advance while it waits for them"
)
_REAL_TIME = FidelityNote("virtual time", "a program uses a timer that does not follow virtual time")
_INTRUDERS = FidelityNote(
    "connections", "other processes connected to the port of a program and were rejected; they had no effect"
)
_FOREIGN_CLIENTS = FidelityNote(
    "connections",
    "other processes than the run's server connected to a port of a program; that may have changed its behaviour",
)
_CRASHED = FidelityNote("programs", "a program exited by itself, which ended the run; outputs end at that instant")
_INCOMPLETE_LOG = FidelityNote(
    "log", "the log of a program could not be written completely to log.txt; no result depends on that file"
)
_UNKNOWN_CLIENTS = FidelityNote(
    "connections",
    "the kernel does not show which process connects to a program's port; any local process could have connected",
)
_NONDETERMINISM = FidelityNote(
    "repeatability",
    "a program depended on the machine (uncounted bytes, or its memory use); another run may differ",
)


class ProgramObserver:
    """Subscribes to pods and events, and collects what programs log."""

    def __init__(self, world: World) -> None:
        self._store = store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        #: The number of logged failed attempts of each existing pod, and the last reason.
        self._failures: dict[Key, tuple[int, str]] = {}
        #: The same from conditions and events, for schedulers whose log has another format.
        self._reasons: dict[Key, tuple[int, str]] = {}
        self._events_to_remove: list[Key] = []
        #: Counts changes in the cluster; a scheduler that only polls does not change it.
        self.activity = 0
        store.subscribe(POD, self._on_pods_changed)
        store.subscribe(EVENTS, self._on_events_changed)

    def record_activity(self) -> None:
        """Count an event that programs may react to."""
        self.activity += 1

    def pop_attempts(self, key: Key) -> tuple[int, str]:
        """Return the number of failed attempts of a pod and the last reason, and remove the pod."""
        visible = self._reasons.pop(key, None)
        logged = self._failures.pop(key, None)
        if visible is not None and logged is None:
            self._notes.add(_UNPARSED_LOG, example=f"pod {_name(key)}")
        return logged or visible or (0, "")

    def record_attempt(self, key: Key, reason: str, at: Instant) -> None:
        """Record a failed attempt that a scheduler has logged."""
        count = self._failures.get(key, (0, ""))[0] + 1
        self._failures[key] = (count, reason)
        self._journal.append(at, "attempt", pod=_name(key), failed=count)

    def note_foreign_connections(self, program: str, connects: int, foreign_bytes: int) -> None:
        """Note that a program opened `connects` connections to servers other than the run's.

        `foreign_bytes` is the number of bytes read from other processes, including those that connected to it.
        """
        if connects > 0:
            self._notes.add(_OTHER_SERVERS, example=program, count=connects)
        elif foreign_bytes > 0:
            self._notes.add(_FOREIGN_CLIENTS, example=program)

    def note_nondeterminism(self, program: str) -> None:
        """Note that a program may behave differently in another run (`timing.coordinator.Attachment.is_repeatable`)."""
        self._notes.add(_NONDETERMINISM, example=program)

    def note_real_time_use(self, program: str, features: Sequence[str]) -> None:
        """Note the features a program used that cannot follow the run's clock."""
        for feature in features:
            self._notes.add(_REAL_TIME, example=f"{program}: {feature}")

    def note_end(self, process: AttachedProcess) -> None:
        """Note that a program exited while the run needed it, and that its log file is incomplete."""
        if process.crash:
            self._notes.add(_CRASHED, example=f"{process.name} {process.crash}")
        if process.log.copy_error:
            self._notes.add(_INCOMPLETE_LOG, example=f"{process.name}: {process.log.copy_error}")

    def note_intruders(self, program: str, connects: int, listener: Acceptor) -> None:
        """Note foreign connections to the port of a program that itself opened at least `connects` connections."""
        foreign = listener.rejected + max(0, listener.closed_unidentified - max(0, connects - listener.accepted))
        if foreign:
            self._notes.add(_INTRUDERS, example=program, count=foreign)
        if not listener.can_identify_program:
            self._notes.add(_UNKNOWN_CLIENTS, example=program)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        self.activity += 1
        if batch.type is not MODIFIED:
            return
        for change in batch.changes():
            reason = _unschedulable_reason(change.object)
            if reason and change.previous is not None and reason != _unschedulable_reason(change.previous):
                self._journal.append(now, "unschedulable", pod=_name(change.key), reason=reason)
                self._record_visible_failure(change.key, reason, 1)

    def _record_visible_failure(self, key: Key, reason: str, count: int) -> None:
        """Record that scheduling a pod failed at least `count` times."""
        previous, _ = self._reasons.get(key, (0, ""))
        self._reasons[key] = (max(previous, count), reason)

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
        reference = event.get("involvedObject") or event.get("regarding") or {}
        key = Key(f"{reference.get('namespace', NAMESPACE)}/{reference.get('name', '')}")
        # client-go reports a series of events minutes later; by then another pod may have the same name.
        pod = self._store.get(POD, key)
        if pod is not None and reference.get("uid", pod["metadata"]["uid"]) == pod["metadata"]["uid"]:
            self._record_visible_failure(key, str(event.get("message") or event.get("note") or ""), _occurrences(event))

    def _remove_events(self, now: Instant) -> None:
        keys = list(dict.fromkeys(self._events_to_remove))
        self._events_to_remove.clear()
        self._store.delete(EVENTS, self._store.existing(EVENTS, keys), now)


def _name(key: Key) -> str:
    return key.removeprefix(f"{NAMESPACE}/")


def _unschedulable_reason(pod: KubeObject) -> str:
    """Return the message of a pod's condition PodScheduled if it is False, and "" otherwise."""
    condition = condition_of(pod, "PodScheduled")
    return "" if condition is None or condition["status"] != "False" else str(condition.get("message", ""))


def _occurrences(event: KubeObject) -> int:
    series = event.get("series") or {}
    return max(int(series.get("count", 0)), int(event.get("count") or event.get("deprecatedCount") or 0), 1)
