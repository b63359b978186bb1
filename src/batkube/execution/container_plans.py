"""What the containers of a simulated pod do: for how long each runs, and how it ends.

Nothing is executed. In this order:

1. the pod's annotations `batkube.io/duration` (or `batkube.io/run-time`) and `batkube.io/exit-code`, for its ordinary
   containers;
2. the first rule that matches it (`workloads.rules`);
3. the command, where it is understood: `sleep 30`, `true`, `false`, and shell scripts of such commands, `exit 3`, …;
4. otherwise a container of a pod that always restarts runs for ever, an init container ends at once, and any other
   ends after `DEFAULT_LENGTH`, successfully.

A container whose memory, by a rule, goes beyond its limit is killed then (exit code 137, OOMKilled).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from batkube.cluster.pods import time_in
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, duration, seconds
from batkube.kernel.quantities import MEMORY, amount
from batkube.workloads.annotations import DURATION, EXIT_CODE
from batkube.workloads.curves import Curve
from batkube.workloads.rules import FOREVER, Conduct

RUN_TIME = "batkube.io/run-time"
DEFAULT_LENGTH: Duration = seconds(10)
#: 128 and the number of the signal, as shells count.
KILLED, TERMINATED = 137, 143
#: What a container runtime says of a process whose end it did not see, because the machine went down (containerd).
LOST = 255
OUT_OF_MEMORY = "OOMKilled"

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
    #: Why it ended, as its status says; "" for what the exit code says.
    reason: str = ""


_FOR_EVER = ContainerPlan(None)
_AT_ONCE = ContainerPlan(Duration(0))
_NO_RULE = Conduct()


def plan_of(pod: KubeObject, container: KubeObject, *, is_init: bool, rule: Conduct = _NO_RULE) -> ContainerPlan:
    """Return what `container` of `pod` does in a run of which a rule says `rule`."""
    plan = _by_rule(rule, _by_itself(pod, container, is_init=is_init))
    if not is_init:
        annotations = pod["metadata"].get("annotations") or {}
        length = time_in(pod, DURATION if DURATION in annotations else RUN_TIME)
        code = _exit_code(annotations.get(EXIT_CODE))
        plan = ContainerPlan(plan.length if length is None else length, plan.exit_code if code is None else code)
    return plan if rule.memory is None else _within_limit(plan, container, rule.memory)


def _by_itself(pod: KubeObject, container: KubeObject, *, is_init: bool) -> ContainerPlan:
    """Return what a container does of which only its own fields tell."""
    if is_init:
        return _FOR_EVER if container.get("restartPolicy") == "Always" else _understood(container) or _AT_ONCE
    is_endless = pod["spec"].get("restartPolicy", "Always") == "Always"
    return _understood(container) or (_FOR_EVER if is_endless else ContainerPlan(DEFAULT_LENGTH))


def _by_rule(rule: Conduct, plan: ContainerPlan) -> ContainerPlan:
    """Return the plan with what a rule says in the place of what it says."""
    length = plan.length if rule.length is None else None if rule.length == FOREVER else rule.length
    return ContainerPlan(length, plan.exit_code if rule.exit_code is None else rule.exit_code)


def _within_limit(plan: ContainerPlan, container: KubeObject, memory: Curve) -> ContainerPlan:
    """Return the plan of a container that is killed as soon as its memory goes beyond its limit."""
    limit = ((container.get("resources") or {}).get("limits") or {}).get(MEMORY)
    age = None if limit is None else memory.exceeds(amount(MEMORY, limit))
    if age is None or (plan.length is not None and plan.length <= age):
        return plan
    return ContainerPlan(age, KILLED, OUT_OF_MEMORY)


def _exit_code(text: str | None) -> int | None:
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
            return ContainerPlan(total, _exit_code(words[1]) or 0 if len(words) > 1 else 0)
        elif program not in _INSTANT:
            strange = True
    return None if strange and not sleeps else ContainerPlan(total, code)


def _slept(words: Sequence[str]) -> Duration | None:
    """Return how long `sleep` with these arguments takes; None for `infinity` and for what cannot be read."""
    try:
        return Duration(sum(duration(word) for word in words)) if words else Duration(0)
    except ValueError:
        return None
