"""What the containers of a simulated pod do: for how long each runs, and how it ends.

Nothing is executed. In this order:

1. the pod's annotations `batkube.io/duration` (or `batkube.io/run-time`) and `batkube.io/exit-code`, for its ordinary
   containers;
2. the first rule that matches it (`workloads.rules`);
3. the command, where it is understood (`scripts`): `sleep 30`, `true`, `false`, and shell scripts of such commands; the
   image `pause` without a command runs until it is stopped;
4. otherwise a container of a pod that always restarts, as those of Deployments, StatefulSets and DaemonSets do, runs
   until it is stopped, an init container ends at once, and any other ends after `DEFAULT_LENGTH`, successfully. The
   last two are guesses, and noted (`undescribed`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from batkube.cluster.pods import time_in
from batkube.cluster.references import annotations_of
from batkube.cluster.store import KubeObject
from batkube.execution.container_runs import ContainerPlan, Role
from batkube.execution.scripts.running import ScriptOutcome, run_program, run_script
from batkube.execution.scripts.surroundings import Environment, Files, Mounts, environment_of, expanded
from batkube.execution.scripts.words import NotUnderstood
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.annotations import DURATION, EXIT_CODE
from batkube.workloads.rules import FOREVER, Conduct, bare_image

RUN_TIME = "batkube.io/run-time"
DEFAULT_LENGTH: Duration = seconds(10)
_SHELLS = ("sh", "bash", "ash", "dash")


_FOR_EVER = ContainerPlan(None)
_AT_ONCE = ContainerPlan(Duration(0), is_default=True)
_A_WHILE = ContainerPlan(DEFAULT_LENGTH, is_default=True)
#: The image of Kubernetes' own that does nothing until it is stopped; schedulers of gangs make placeholders of it.
_PAUSE = "pause"
_NO_RULE = Conduct()
_BEGINNING = Instant(0)


def plan_of(
    pod: KubeObject,
    container: KubeObject,
    *,
    role: Role = Role.MAIN,
    rule: Conduct = _NO_RULE,
    environment: Environment | None = None,
    disk: Mounts | None = None,
) -> ContainerPlan:
    """Return what `container` of `pod` does in a run of which a rule says `rule`; limits aside.

    Its environment is what the pod says of it, if there is nothing else. What its script writes to `disk` is written.
    """
    disk = Mounts(Files(), pod, container, _BEGINNING) if disk is None else disk
    start = environment_of(pod, container) if environment is None else environment
    plan = _by_rule(rule, _by_itself(pod, container, start, disk, role))
    if role is Role.MAIN:
        annotations = annotations_of(pod)
        length = time_in(pod, DURATION if DURATION in annotations else RUN_TIME)
        code = _exit_code(annotations.get(EXIT_CODE))
        if length is not None or code is not None:
            plan = _replaced(plan, plan.length if length is None else length, code, is_said=length is not None)
    return plan if rule.memory is None else plan._replace(memory=rule.memory)


def _by_itself(pod: KubeObject, container: KubeObject, start: Environment, disk: Mounts, role: Role) -> ContainerPlan:
    """Return what a container does of which only its own fields tell."""
    if role is Role.INIT:
        usual = _FOR_EVER if container.get("restartPolicy") == "Always" else _AT_ONCE
    else:
        is_endless = role is Role.EPHEMERAL or pod["spec"].get("restartPolicy", "Always") == "Always"
        usual = _FOR_EVER if is_endless else _A_WHILE
    plan = _understood(container, start, disk)
    return plan if isinstance(plan, ContainerPlan) else usual._replace(doubt=plan)


def _by_rule(rule: Conduct, plan: ContainerPlan) -> ContainerPlan:
    """Return the plan with what a rule says in the place of what it says."""
    if rule.length is None and rule.exit_code is None:
        return plan
    length = plan.length if rule.length is None else None if rule.length == FOREVER else rule.length
    return _replaced(plan, length, rule.exit_code, is_said=rule.length is not None)


def _replaced(plan: ContainerPlan, length: Duration | None, exit_code: int | None, *, is_said: bool) -> ContainerPlan:
    """Return a plan with another end; `is_said` tells that its length is not a default."""
    code = plan.exit_code if exit_code is None else exit_code
    return ContainerPlan(length, code, is_default=plan.is_default and not is_said)


def _exit_code(text: str | None) -> int | None:
    return int(text) % 256 if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _understood(container: KubeObject, start: Environment, disk: Mounts) -> ContainerPlan | str:
    """Return what a container's command does; or why that is not understood, "" where nobody would expect it to be."""
    written = (*(container.get("command") or ()), *(container.get("args") or ()))
    words = [expanded(word, start.variables) for word in written]
    if not words:
        return _FOR_EVER if bare_image(container.get("image", "")).rpartition("/")[2] == _PAUSE else ""
    try:
        outcome = run_command(words, start, disk)
    except NotUnderstood as problem:
        return str(problem) if _is_shell(words) else ""
    disk.is_followed = not outcome.guess
    doubt = f"nobody knows what `{outcome.guess}` does; it was taken to take no time and to succeed"
    return ContainerPlan(outcome.length, outcome.exit_code, doubt=doubt if outcome.guess else "")


def run_command(words: list[str], start: Environment, disk: Mounts) -> ScriptOutcome:
    """Return how a command goes, that of a container or one that is executed in it; raises NotUnderstood."""
    if _is_shell(words) and (line := _shell_line(words[1:])) is not None:
        return run_script(line.script, start._replace(arguments=line.arguments), disk, line.options)
    return run_program(words, start, disk)


def _is_shell(words: list[str]) -> bool:
    return words[0].rpartition("/")[2] in _SHELLS


class _ShellLine(NamedTuple):
    """How a shell is called: `sh -e -c script name argument …`."""

    options: list[str | None]
    script: str
    arguments: tuple[str, ...]


def _shell_line(words: list[str]) -> _ShellLine | None:
    """Return what a shell is called with, None if it is not called with a script."""
    options: list[str | None] = []
    while words and re.fullmatch(r"-[a-zA-Z]+", words[0]):
        letters, *words = words
        options += ["-" + letters[1:].replace("c", "")] if letters != "-c" else []
        if "o" in letters:
            options, words = [*options, *words[:1]], words[1:]
        if "c" in letters:
            return _ShellLine(options, words[0], tuple(words[2:])) if words else None
    return None
