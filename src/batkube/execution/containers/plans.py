"""Determines the plan of a container: how long it runs, and how it ends. Nothing is really executed.

The first of these sources that applies decides:

1. the pod's annotations `batkube.io/duration` (or `batkube.io/run-time`) and `batkube.io/exit-code`, for its main
   containers;
2. the first rule that matches the container (`workloads.container_rules`);
3. its command, if it is supported (`execution.scripts`): `sleep 30`, `true`, `false`, and shell scripts of such
   commands. The image `pause` without a command runs until it is stopped;
4. defaults. A container of a pod with restartPolicy Always (Deployment, StatefulSet, DaemonSet) runs until it is
   stopped. An init container ends at once, any other container after `DEFAULT_LENGTH`, both with exit code 0. The last
   two are guesses, and noted as such (`guesses`).
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
#: Kubernetes' pause image, which does nothing until it is stopped; gang schedulers use it for placeholder pods.
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
    """Return the plan of a run of `container` with the behaviour `rule`, before its limits are applied.

    The default environment is that of the pod's spec. Files that its script writes are written to `disk`.
    """
    disk = ContainerFiles(VolumeFiles(), pod, container, _START) if disk is None else disk
    start = environment_of(pod, container) if environment is None else environment
    plan = _apply_rule(rule, _plan_from_spec(pod, container, start, disk, role))
    if role is ContainerRole.MAIN:
        annotations = annotations_of(pod)
        length = duration_annotation(pod, DURATION if DURATION in annotations else RUN_TIME)
        code = _exit_code(annotations.get(EXIT_CODE))
        if length is not None or code is not None:
            plan = _with_end(plan, plan.length if length is None else length, code, has_known_length=length is not None)
    return plan if rule.memory is None else plan._replace(memory=rule.memory)


def _plan_from_spec(
    pod: KubeObject, container: KubeObject, start: Environment, disk: ContainerFiles, role: ContainerRole
) -> ContainerPlan:
    """Return the plan of a container according to its spec: its command, or the default."""
    if role is ContainerRole.INIT:
        default = _ENDLESS if container.get("restartPolicy") == "Always" else _IMMEDIATE
    else:
        is_endless = role is ContainerRole.EPHEMERAL or pod["spec"].get("restartPolicy", "Always") == "Always"
        default = _ENDLESS if is_endless else _DEFAULT
    plan = _plan_from_command(container, start, disk)
    return plan if isinstance(plan, ContainerPlan) else default._replace(guess_reason=plan)


def _apply_rule(rule: ContainerBehaviour, plan: ContainerPlan) -> ContainerPlan:
    """Return the plan with the run time and exit code of a rule, if set."""
    if rule.run_time is None and rule.exit_code is None:
        return plan
    length = plan.length if rule.run_time is None else None if rule.run_time == FOREVER else rule.run_time
    return _with_end(plan, length, rule.exit_code, has_known_length=rule.run_time is not None)


def _with_end(
    plan: ContainerPlan, length: Duration | None, exit_code: int | None, *, has_known_length: bool
) -> ContainerPlan:
    """Return a plan with another end; `has_known_length` means that the length is not a default."""
    code = plan.exit_code if exit_code is None else exit_code
    return ContainerPlan(length, code, has_default_length=plan.has_default_length and not has_known_length)


def _exit_code(text: str | None) -> int | None:
    return int(text) % 256 if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _plan_from_command(container: KubeObject, start: Environment, disk: ContainerFiles) -> ContainerPlan | str:
    """Return the plan of a container's command, or why it is not supported: "" for an unknown program."""
    command = (*(container.get("command") or ()), *(container.get("args") or ()))
    words = [expand_references(word, start.variables) for word in command]
    if not words:
        return _ENDLESS if image_repository(container.get("image", "")).rpartition("/")[2] == _PAUSE_IMAGE else ""
    try:
        outcome = run_command(words, start, disk)
    except UnsupportedScript as problem:
        return str(problem) if _is_shell(words) else ""
    disk.is_fully_known = not outcome.unknown_program
    assumption = f"program `{outcome.unknown_program}` is unknown; it was assumed to take no time and to succeed"
    return ContainerPlan(outcome.length, outcome.exit_code, guess_reason=assumption if outcome.unknown_program else "")


def run_command(words: list[str], start: Environment, disk: ContainerFiles) -> ScriptOutcome:
    """Return the outcome of a container's command, or of one executed in it; raise UnsupportedScript."""
    if _is_shell(words) and (line := _parse_shell_invocation(words[1:])) is not None:
        return run_script(line.script, start._replace(arguments=line.arguments), disk, line.options)
    return run_program(words, start, disk)


def _is_shell(words: list[str]) -> bool:
    return words[0].rpartition("/")[2] in _SHELLS


class _ShellInvocation(NamedTuple):
    """The command line of a shell: `sh -e -c script name argument …`."""

    options: list[str | None]
    script: str
    arguments: tuple[str, ...]


def _parse_shell_invocation(words: list[str]) -> _ShellInvocation | None:
    """Parse the arguments of a shell; return None if they contain no script."""
    options: list[str | None] = []
    while words and re.fullmatch(r"-[a-zA-Z]+", words[0]):
        letters, *words = words
        options += ["-" + letters[1:].replace("c", "")] if letters != "-c" else []
        if "o" in letters:
            options, words = [*options, *words[:1]], words[1:]
        if "c" in letters:
            return _ShellInvocation(options, words[0], tuple(words[2:])) if words else None
    return None
