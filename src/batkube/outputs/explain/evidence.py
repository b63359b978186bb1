"""Reads what journal.jsonl and reasons.jsonl contain about each job and pod."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from batkube.kernel.instants import LATEST_NS, Instant
from batkube.outputs.explain.model import FailedAttempts, JournalFact, NodeChoice, NodeScore, PlannedStart
from batkube.outputs.explain.phrases import exact_time
from batkube.outputs.explain.units import Unit
from batkube.outputs.playback.cells import at_resolution
from batkube.outputs.playback.journal_entries import read_journal
from batkube.outputs.playback.model import JournalEntry
from batkube.outputs.playback.playback import Playback

REASONS = "reasons.jsonl"
#: Events of the journal that end all pods on a node.
_NODE_LOSSES = {"fail": "failed", "remove": "was removed", "drain": "was drained", "reclaim": "was reclaimed"}
#: Events of the journal that end a pod.
_ENDS = ("evict", "reject", "finish")


class Evidence:
    """The entries of a run's journal and reasons, by subject."""

    def __init__(self, playback: Playback) -> None:
        path: Path = playback.files.beside(REASONS)
        #: Whether the run recorded reasons.
        self.has_reasons = path.is_file()
        self._journal = _by_subject(playback.journal)
        self._reasons = _by_subject(read_journal(path)) if self.has_reasons else {}
        self._evictions = [entry for entries in self._reasons.values() for entry in entries if entry.event == "evict"]
        self._losses = [entry for entry in playback.journal if entry.event in _NODE_LOSSES]

    def start_reason(self, name: str, at: Instant | None) -> str:
        """Return the recorded reason for starting a job at an instant, as a sentence; "" if there is none."""
        for entry in self._reasons.get(name, ()):
            if entry.event == "start" and at_resolution(entry.at) == at:
                return _start_text(entry.fields)
        return ""

    def reservations(self, unit: Unit) -> tuple[PlannedStart, ...]:
        """Return the starts that the policy planned for a waiting job, in order; each replaces the previous one."""
        return tuple(
            PlannedStart(
                at_resolution(entry.at),
                at_resolution(_number(entry.fields, "start")),
                str(entry.fields.get("machines", "")),
                _texts(entry.fields, "after"),
            )
            for entry in self._during(self._reasons, unit)
            if entry.fields.get("rule") == "reservation"
        )

    def attempts(self, unit: Unit) -> tuple[FailedAttempts, ...]:
        """Return the failed attempts to place a unit's pods; consecutive ones with the same reason are merged."""
        entries = self._reasons if self.has_reasons else self._journal
        groups: list[FailedAttempts] = []
        reason = ""
        for entry in sorted(self._of_pods(entries, unit), key=lambda entry: entry.number):
            if entry.event == "unschedulable":
                reason = str(entry.fields.get("reason", ""))
            if entry.event != "attempt":
                continue
            text, at = str(entry.fields.get("reason", reason)), at_resolution(entry.at)
            plugins = _texts(entry.fields, "plugins")
            if groups and (groups[-1].reason, groups[-1].plugins) == (text, plugins):
                groups[-1] = FailedAttempts(groups[-1].first, at, groups[-1].count + 1, text, plugins)
            else:
                groups.append(FailedAttempts(at, at, 1, text, plugins))
        return tuple(groups)

    def choices(self, unit: Unit) -> tuple[NodeChoice, ...]:
        """Return how a real scheduler chose the node of each pod."""
        return tuple(
            NodeChoice(
                at_resolution(entry.at),
                str(entry.fields.get("pod", "")),
                str(entry.fields.get("node", "")),
                _number(entry.fields, "evaluated"),
                _number(entry.fields, "feasible"),
                _number(entry.fields, "tied"),
                tuple(_scores(entry.fields)),
            )
            for entry in self._of_pods(self._reasons, unit)
            if entry.event == "choose"
        )

    def facts(self, unit: Unit) -> tuple[JournalFact, ...]:
        """Return all other recorded events of a unit, in order of time."""
        entries = [*self._of_execution(unit), *self._of_pods(self._journal, unit)]
        facts = [
            JournalFact(at_resolution(entry.at), text)
            for entry in sorted(entries, key=lambda entry: entry.number)
            if (text := self._fact_text(entry, unit))
        ]
        nodes = {pod.node for pod in unit.pods if pod.node}
        for entry in self._losses:
            lost = nodes.intersection(str(entry.fields.get("nodes", "")).split(" "))
            at = at_resolution(entry.at)
            if lost and any(pod.node in lost and pod.is_bound(Instant(at - 1)) for pod in unit.pods):
                names = ", ".join(sorted(lost))
                facts.append(JournalFact(at, f"{names}, on which it ran, {_NODE_LOSSES[entry.event]}"))
        facts += [
            JournalFact(at_resolution(entry.at), f"left in the queue: {entry.fields.get('text')}")
            for entry in self._during(self._reasons, unit)
            if entry.event == "wait" and entry.fields.get("rule") == "text"
        ]
        facts += self._evictions_for(unit)
        return tuple(sorted(dict.fromkeys(facts), key=lambda fact: fact.at))

    def _evictions_for(self, unit: Unit) -> Iterator[JournalFact]:
        """Yield the recorded evictions that freed resources for a unit."""
        names = {unit.name, *(pod.name for pod in unit.pods)}
        for entry in self._evictions:
            at = at_resolution(entry.at)
            if entry.fields.get("by") in names and unit.queued <= at <= unit.wait_end:
                victim = entry.fields.get("job") or entry.fields.get("pod")
                yield JournalFact(at, f"{victim} was evicted to free resources for it")

    def _fact_text(self, entry: JournalEntry, unit: Unit) -> str:
        fields = entry.fields
        ranks = f" (ranks {fields['pods']})" if fields.get("pods") else ""
        if entry.event == "evict":
            return f"evicted{ranks}{self._evicted_by(entry, unit)}"
        if entry.event == "nominate":
            return f"{fields.get('node')} was nominated{ranks}: pods of lower priority are evicted from it"
        if entry.event == "admit":
            return "admitted by its scheduler"
        if entry.event == "wait":
            return f"its pods {fields.get('pods')} had nodes and waited for the others, which had none"
        if entry.event == "deadlock":
            return f"in a deadlock: it held {fields.get('nodes')}, and could never get nodes for its other pods"
        if entry.event in ("reject", "refuse"):
            return f"{entry.event}ed by the {'scheduler' if entry.event == 'reject' else 'API'}: {fields.get('reason')}"
        if entry.event == "late":
            return f"its binding came {exact_time(_number(fields, 'by'))} late"
        return ""

    def _evicted_by(self, entry: JournalEntry, unit: Unit) -> str:
        """Return the rest of the sentence on an eviction: for which job, or why, if that was recorded."""
        names = dict.fromkeys([unit.name, *(pod.name for pod in unit.pods)])
        for reason in (reason for name in names for reason in self._reasons.get(name, ())):
            if reason.event == "evict" and at_resolution(reason.at) == at_resolution(entry.at):
                return _eviction_text(reason.fields)
        return f": {entry.fields['reason']}" if entry.fields.get("reason") else ""

    def _of_execution(self, unit: Unit) -> Iterator[JournalEntry]:
        """Yield the journal's entries on one execution of a job: from its submission until the next submission."""
        execution = -1
        for entry in self._journal.get(unit.name, ()):
            execution += entry.event in ("submit", "resubmit")
            if execution == unit.execution:
                yield entry

    def _during(self, entries: Mapping[str, list[JournalEntry]], unit: Unit) -> Iterator[JournalEntry]:
        """Yield the entries about a unit's job from its queueing to its end."""
        for entry in entries.get(unit.name, ()):
            at = at_resolution(entry.at)
            if unit.queued <= at and (unit.ended is None or at <= unit.ended):
                yield entry

    def _of_pods(self, entries: Mapping[str, list[JournalEntry]], unit: Unit) -> Iterator[JournalEntry]:
        """Yield the entries about a unit's pods, while they existed."""
        for pod in unit.pods:
            for entry in entries.get(pod.name, ()):
                at = at_resolution(entry.at)
                # At the instant at which a pod ends, its successor may already have its name.
                is_own = pod.ended is None or at < pod.ended or at == pod.created or entry.event in _ENDS
                if pod.created <= at and is_own and (pod.ended is None or at <= pod.ended):
                    yield entry


def _by_subject(entries: tuple[JournalEntry, ...]) -> dict[str, list[JournalEntry]]:
    groups: defaultdict[str, list[JournalEntry]] = defaultdict(list)
    for entry in entries:
        for field in ("job", "pod"):
            name = entry.fields.get(field)
            if isinstance(name, str):
                groups[name.removeprefix("default/")].append(entry)
    return groups


def _start_text(fields: Mapping[str, object]) -> str:
    if fields.get("rule") != "backfilling":
        return str(fields.get("text", ""))
    start, end = (at_resolution(_number(fields, name)) for name in ("head_start", "end"))
    if start >= at_resolution(LATEST_NS):
        return f"backfilling: {fields.get('head')} could not start anyway, because machines were missing"
    head = f"{fields.get('head')}, which was to start by {exact_time(start)}"
    if fields.get("is_short"):
        return f"backfilling: it was to end by {exact_time(end)}, before the start of {head}"
    return f"backfilling: it used none of the machines reserved for {head}"


def _eviction_text(fields: Mapping[str, object]) -> str:
    if "by" not in fields:
        return f": {fields.get('text')}"
    has_priorities = "by_priority" in fields and "priority" in fields
    priorities = f" (priority {fields['by_priority']} > {fields['priority']})" if has_priorities else ""
    return f" to free resources for {fields['by']}{priorities}"


def _scores(fields: Mapping[str, object]) -> Iterator[NodeScore]:
    best = fields.get("best")
    for entry in best if isinstance(best, list) else ():
        yield NodeScore(str(entry["node"]), int(entry["score"]), dict(entry["plugins"]))


def _number(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0


def _texts(fields: Mapping[str, object], name: str) -> tuple[str, ...]:
    values = fields.get(name)
    return tuple(map(str, values)) if isinstance(values, list) else ()
