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

from batkube.cluster.object_meta import annotations_of
from batkube.cluster.pods.accessors import duration_annotation
from batkube.cluster.store import KubeObject
from batkube.execution.pods.container_plan import ContainerPlan, ContainerRole
from batkube.execution.scripts.environment import (
    ContainerFiles,
    Environment,
    VolumeFiles,
    environment_of,
    expand_references,
)
from batkube.execution.scripts.interpreter import ScriptOutcome, run_program, run_script
from batkube.execution.scripts.lexer import UnsupportedScript
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.container_rules.rules import FOREVER, ContainerBehaviour, image_repository
from batkube.workloads.formats.kubernetes.annotations import DURATION, EXIT_CODE

RUN_TIME = "batkube.io/run-time"
DEFAULT_LENGTH: Duration = seconds(10)
_SHELLS = ("sh", "bash", "ash", "dash")


_ENDLESS = ContainerPlan(None)
_IMMEDIATE = ContainerPlan(Duration(0), has_default_length=True)
_DEFAULT = ContainerPlan(DEFAULT_LENGTH, has_default_length=True)
#: The image of Kubernetes' own that does nothing until it is stopped; schedulers of gangs make placeholders of it.
_PAUSE_IMAGE = "pause"
_NO_RULE = ContainerBehaviour()
_START = Instant(0)


def plan_of(
    pod: KubeObject,
    container: KubeObject,
    *,
    role: ContainerRole = ContainerRole.MAIN,
    rule: ContainerBehaviour = _NO_RULE,
    environment: Environment | None = None,
    disk: ContainerFiles | None = None,
) -> ContainerPlan:
    """Return what `container` of `pod` does in a run of which a rule says `rule`; limits aside.

    Its environment is what the pod says of it, if there is nothing else. What its script writes to `disk` is written.
    """
    disk = ContainerFiles(VolumeFiles(), pod, container, _START) if disk is None else disk
    start = environment_of(pod, container) if environment is None else environment
    plan = _apply_rule(rule, _plan_from_spec(pod, container, start, disk, role))
    if role is ContainerRole.MAIN:
        annotations = annotations_of(pod)
        length = duration_annotation(pod, DURATION if DURATION in annotations else RUN_TIME)
        code = _exit_code(annotations.get(EXIT_CODE))
        if length is not None or code is not None:
            plan = _with_end(plan, plan.length if length is None else length, code, is_said=length is not None)
    return plan if rule.memory is None else plan._replace(memory=rule.memory)


def _plan_from_spec(
    pod: KubeObject, container: KubeObject, start: Environment, disk: ContainerFiles, role: ContainerRole
) -> ContainerPlan:
    """Return what a container does of which only its own fields tell."""
    if role is ContainerRole.INIT:
        usual = _ENDLESS if container.get("restartPolicy") == "Always" else _IMMEDIATE
    else:
        is_endless = role is ContainerRole.EPHEMERAL or pod["spec"].get("restartPolicy", "Always") == "Always"
        usual = _ENDLESS if is_endless else _DEFAULT
    plan = _plan_from_command(container, start, disk)
    return plan if isinstance(plan, ContainerPlan) else usual._replace(guess_reason=plan)


def _apply_rule(rule: ContainerBehaviour, plan: ContainerPlan) -> ContainerPlan:
    """Return the plan with what a rule says in the place of what it says."""
    if rule.run_time is None and rule.exit_code is None:
        return plan
    length = plan.length if rule.run_time is None else None if rule.run_time == FOREVER else rule.run_time
    return _with_end(plan, length, rule.exit_code, is_said=rule.run_time is not None)


def _with_end(plan: ContainerPlan, length: Duration | None, exit_code: int | None, *, is_said: bool) -> ContainerPlan:
    """Return a plan with another end; `is_said` tells that its length is not a default."""
    code = plan.exit_code if exit_code is None else exit_code
    return ContainerPlan(length, code, has_default_length=plan.has_default_length and not is_said)


def _exit_code(text: str | None) -> int | None:
    return int(text) % 256 if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _plan_from_command(container: KubeObject, start: Environment, disk: ContainerFiles) -> ContainerPlan | str:
    """Return what a container's command does; or why that is not understood, "" where nobody would expect it to be."""
    written = (*(container.get("command") or ()), *(container.get("args") or ()))
    words = [expand_references(word, start.variables) for word in written]
    if not words:
        return _ENDLESS if image_repository(container.get("image", "")).rpartition("/")[2] == _PAUSE_IMAGE else ""
    try:
        outcome = run_command(words, start, disk)
    except UnsupportedScript as problem:
        return str(problem) if _is_shell(words) else ""
    disk.is_fully_known = not outcome.unknown_program
    doubt = f"nobody knows what `{outcome.unknown_program}` does; it was taken to take no time and to succeed"
    return ContainerPlan(outcome.length, outcome.exit_code, guess_reason=doubt if outcome.unknown_program else "")


def run_command(words: list[str], start: Environment, disk: ContainerFiles) -> ScriptOutcome:
    """Return how a command goes, that of a container or one that is executed in it; raises UnsupportedScript."""
    if _is_shell(words) and (line := _parse_shell_invocation(words[1:])) is not None:
        return run_script(line.script, start._replace(arguments=line.arguments), disk, line.options)
    return run_program(words, start, disk)


def _is_shell(words: list[str]) -> bool:
    return words[0].rpartition("/")[2] in _SHELLS


class _ShellInvocation(NamedTuple):
    """How a shell is called: `sh -e -c script name argument …`."""

    options: list[str | None]
    script: str
    arguments: tuple[str, ...]


def _parse_shell_invocation(words: list[str]) -> _ShellInvocation | None:
    """Return what a shell is called with, None if it is not called with a script."""
    options: list[str | None] = []
    while words and re.fullmatch(r"-[a-zA-Z]+", words[0]):
        letters, *words = words
        options += ["-" + letters[1:].replace("c", "")] if letters != "-c" else []
        if "o" in letters:
            options, words = [*options, *words[:1]], words[1:]
        if "c" in letters:
            return _ShellInvocation(options, words[0], tuple(words[2:])) if words else None
    return None
