"""Which of kube-controller-manager's controllers are at work in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batkube.programs.program import OutsideScheduler
from batkube.scenarios.scenario import CONTROLLER_MANAGER

#: The argument that says so.
CONTROLLERS = "--controllers="
NODE_LIFECYCLE, AUTOSCALING = "node-lifecycle-controller", "horizontal-pod-autoscaler-controller"


def with_controllers(program: OutsideScheduler, more: Sequence[str]) -> OutsideScheduler:
    """Return the program; if it is a kube-controller-manager with `more` at work, unless the user names who is."""
    is_named = any(text.startswith(CONTROLLERS) for text in program.arguments)
    if is_named or not more or program.folder != CONTROLLER_MANAGER:
        return program
    return replace(program, arguments=(*program.arguments, CONTROLLERS + ",".join((*_at_work(program), *more))))


def watches_nodes(program: OutsideScheduler) -> bool:
    """Return whether it is a kube-controller-manager that looks after nodes (Kubernetes: IsControllerEnabled)."""
    names = _at_work(program)
    return NODE_LIFECYCLE in names or ("*" in names and f"-{NODE_LIFECYCLE}" not in names)


def _at_work(program: OutsideScheduler) -> list[str]:
    texts = [text for text in (*program.start.arguments, *program.arguments) if text.startswith(CONTROLLERS)]
    return texts[-1].removeprefix(CONTROLLERS).split(",") if texts else []
