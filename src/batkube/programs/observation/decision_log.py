"""Reasons of kube-scheduler, parsed from its log, for `batkube explain`.

The messages of schedule_one.go are logged at verbosity 10, those of the queue at 3 (pkg/scheduler). They reach
reasons.jsonl as one line per attempt: the scores of the best nodes, or the reason of the failure and the plugins that
caused it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from batkube.cluster.mapping import NAMESPACE
from batkube.kernel.instants import START, Instant
from batkube.kernel.journal import Journal
from batkube.programs.observation.log_lines import KLOG_HEADER, LogLines, instant_in_log
from batkube.timing.processes.program_log import ProgramLog

#: The flag that raises the verbosity of these messages only: everything at 10 is many times as much.
VERBOSITY = "--vmodule=schedule_one=10,generic_scheduler=10,scheduling_queue=3"
#: The flags of a user that this one must not override.
VERBOSITY_FLAGS = ("--v", "-v", "--vmodule")
#: How many nodes are recorded of each decision, the best ones first.
BEST_NODES = 5

_LINE = re.compile(KLOG_HEADER + rb' *\d+ [\w.]+:\d+\] "((?:[^"\\]|\\.)*)" (.*)$')
_FIELD = re.compile(rb'([\w ]+?)=("(?:[^"\\]|\\.)*"|\{.*?\}(?= |$)|\S+)')
_NAME = re.compile(r'"([^"]+)":')


@dataclass(slots=True)
class _Attempt:
    """The data that the scheduler has logged about an attempt to place a pod."""

    #: By node, the score of each plugin, weighted, and the sum of all.
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    #: The reason of the failure, its instant, and the plugins that rejected nodes.
    failure: str | None = None
    at: Instant = START
    plugins: list[str] = field(default_factory=list)


class DecisionLogReader:
    """Parses the growing log of a scheduler, and records its reasons."""

    def __init__(self, log: ProgramLog, reasons: Journal) -> None:
        self._reasons = reasons
        self._lines = LogLines(log, b".go:")
        self._attempts: dict[str, _Attempt] = {}
        self._handlers: dict[bytes, Callable[[dict[str, str], Instant], None]] = {
            b"Attempting to schedule pod": self._on_attempt,
            b"Plugin scored node for pod": self._on_plugin_score,
            b"Extender scored node for pod": self._on_plugin_score,
            b"Calculated node's final score for pod": self._on_total,
            b"Successfully bound pod to node": self._on_bound,
            b"Unable to schedule pod; no fit; waiting": self._on_failure,
            b"Unable to schedule pod; no fit": self._on_failure,
            b"Preemptor Pod preempted victim Pod": self._on_preempted,
            b"Pod moved to an internal scheduling queue": self._on_queued,
        }

    def read(self, now: Instant) -> None:
        """Record the reasons logged since the last call, none later than `now`."""
        for line in self._lines.pop_all():
            match = _LINE.match(line)
            handler = None if match is None else self._handlers.get(match[7])
            if match is not None and handler is not None:
                handler(_fields(match[8]), instant_in_log(match.group(1, 2, 3, 4, 5, 6), now))
        for pod in [pod for pod, attempt in self._attempts.items() if attempt.failure is not None]:
            self._record_failure(pod)

    def discard(self) -> None:
        """Ignore everything logged since the last call: its timestamps are not virtual."""
        self._lines.discard()

    def _on_attempt(self, fields: dict[str, str], at: Instant) -> None:
        self._record_failure(fields["pod"])
        self._attempts[fields["pod"]] = _Attempt()

    def _on_plugin_score(self, fields: dict[str, str], at: Instant) -> None:
        scores = self._attempt(fields).scores.setdefault(fields["node"], {})
        scores[fields.get("plugin") or fields["extender"]] = int(fields["score"])

    def _on_total(self, fields: dict[str, str], at: Instant) -> None:
        self._attempt(fields).totals[fields["node"]] = int(fields["score"])

    def _on_bound(self, fields: dict[str, str], at: Instant) -> None:
        attempt = self._attempts.pop(fields["pod"], None) or _Attempt()
        ranked = sorted(attempt.totals.items(), key=lambda item: (-item[1], item[0]))
        chosen = fields["node"]
        best = [name for name, _ in ranked[:BEST_NODES]]
        if chosen in attempt.totals and chosen not in best:
            best.append(chosen)
        tied = sum(total == ranked[0][1] for _, total in ranked) if ranked else 0
        self._reasons.append(
            at,
            "choose",
            pod=_pod_name(fields["pod"]),
            node=chosen,
            evaluated=int(fields.get("evaluatedNodes", 0)),
            feasible=int(fields.get("feasibleNodes", 0)),
            tied=tied,
            best=[
                {"node": name, "score": attempt.totals[name], "plugins": attempt.scores.get(name, {})} for name in best
            ],
        )

    def _on_failure(self, fields: dict[str, str], at: Instant) -> None:
        attempt = self._attempt(fields)
        attempt.failure, attempt.at = fields.get("err", ""), at

    def _on_preempted(self, fields: dict[str, str], at: Instant) -> None:
        victim, by = _pod_name(fields["victim"]), _pod_name(fields["preemptor"])
        self._reasons.append(at, "evict", pod=victim, rule="preemption", by=by, node=fields.get("node", ""))

    def _on_queued(self, fields: dict[str, str], at: Instant) -> None:
        attempt = self._attempts.get(fields["pod"])
        if attempt is not None and attempt.failure is not None and fields.get("event") == "ScheduleAttemptFailure":
            attempt.plugins = sorted(_NAME.findall(fields.get("unschedulable plugins", "")))
            self._record_failure(fields["pod"])

    def _record_failure(self, pod: str) -> None:
        attempt = self._attempts.get(pod)
        if attempt is not None and attempt.failure is not None:
            del self._attempts[pod]
            self._reasons.append(
                attempt.at, "attempt", pod=_pod_name(pod), reason=attempt.failure, plugins=attempt.plugins
            )

    def _attempt(self, fields: dict[str, str]) -> _Attempt:
        return self._attempts.setdefault(fields["pod"], _Attempt())


def _fields(text: bytes) -> dict[str, str]:
    """Return the fields of a klog line by name."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        content = value[1:-1].replace(b'\\"', b'"') if value.startswith(b'"') else value
        fields[name.strip().decode(errors="replace")] = content.decode(errors="replace")
    return fields


def _pod_name(key: str) -> str:
    return key.removeprefix(f"{NAMESPACE}/")
