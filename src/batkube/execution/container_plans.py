"""What the containers of a simulated pod do: for how long each runs, and how it ends.

Nothing is executed. In this order:

1. the pod's annotations `batkube.io/duration` (or `batkube.io/run-time`) and `batkube.io/exit-code`, for its ordinary
   containers;
2. the command, where it is understood: `sleep 30`, `true`, `false`, and shell scripts of such commands, `exit 3`, …;
3. otherwise a container of a pod that always restarts runs for ever, an init container ends at once, and any other
   ends after `DEFAULT_LENGTH`, successfully.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, duration, seconds
from batkube.workloads.annotations import DURATION, EXIT_CODE

RUN_TIME = "batkube.io/run-time"
DEFAULT_LENGTH: Duration = seconds(10)

_SHELLS = ("sh", "bash", "ash", "dash")
#: Commands that are over as soon as they began.
_INSTANT = frozenset(
    (":", "true", "false", "echo", "printf", "date", "hostname", "pwd", "env", "ls", "cat", "set", "exit")
)
_SEPARATORS = re.compile(r"&&|\|\||;|\n")
_ENDLESS_LOOP = re.compile(r"\bwhile\s+(?:true|:|\[\s*1\s*\])\s*;?\s*do\b|\btail\s+-[fF]\b")


class ContainerPlan(NamedTuple):
    """How one run of a container goes; `length` is None when it never ends by itself."""

    length: Duration | None
    exit_code: int = 0


_FOR_EVER = ContainerPlan(None)
_AT_ONCE = ContainerPlan(Duration(0))


def plan_of(pod: KubeObject, container: KubeObject, *, is_init: bool) -> ContainerPlan:
    """Return what `container` of `pod` does each time it is started."""
    if is_init:
        if container.get("restartPolicy") == "Always":
            return _FOR_EVER
        return _understood(container) or _AT_ONCE
    annotations = pod["metadata"].get("annotations") or {}
    told = _told_length(annotations.get(DURATION, annotations.get(RUN_TIME)))
    code = _told_code(annotations.get(EXIT_CODE))
    plan = _understood(container)
    if plan is None:
        plan = _FOR_EVER if pod["spec"].get("restartPolicy", "Always") == "Always" else ContainerPlan(DEFAULT_LENGTH)
    return ContainerPlan(plan.length if told is None else told, plan.exit_code if code is None else code)


def _told_length(text: str | None) -> Duration | None:
    """Return the time that an annotation tells; one that cannot be read tells nothing."""
    if text is None:
        return None
    try:
        return max(Duration(0), duration(text))
    except ValueError:
        return None


def _told_code(text: str | None) -> int | None:
    return int(text) % 256 if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _understood(container: KubeObject) -> ContainerPlan | None:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    if program in _SHELLS and len(words) > 2 and words[1].startswith("-") and words[1].endswith("c"):
        return _script(words[2])
    return _commands([words])


def _script(text: str) -> ContainerPlan | None:
    if _ENDLESS_LOOP.search(text):
        return _FOR_EVER
    return _commands([part.split() for part in _SEPARATORS.split(text) if part.strip()])


def _commands(commands: Sequence[Sequence[str]]) -> ContainerPlan | None:
    """Return how commands go one after the other; None when nothing is known of how long they take."""
    total, sleeps, strange, code = Duration(0), False, False, 0
    for words in commands:
        program = words[0].rpartition("/")[2]
        code = 1 if program == "false" else 0
        if program == "sleep":
            length = _slept(words[1:])
            if length is None:
                return _FOR_EVER
            sleeps, total = True, Duration(total + length)
        elif program == "exit":
            return ContainerPlan(total, _told_code(words[1]) or 0 if len(words) > 1 else 0)
        elif program not in _INSTANT:
            strange = True
    return None if strange and not sleeps else ContainerPlan(total, code)


def _slept(words: Sequence[str]) -> Duration | None:
    """Return how long `sleep` with these arguments takes; None for `infinity` and for what cannot be read."""
    try:
        return Duration(sum(duration(word) for word in words)) if words else Duration(0)
    except ValueError:
        return None
