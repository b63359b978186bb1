"""Selection of the controllers that kube-controller-manager runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batkube.programs.program import ExternalProgram
from batkube.scenarios.scenario import CONTROLLER_MANAGER

#: The flag that lists the enabled controllers.
CONTROLLERS_FLAG = "--controllers="
NODE_LIFECYCLE, AUTOSCALING = "node-lifecycle-controller", "horizontal-pod-autoscaler-controller"


def with_controllers(program: ExternalProgram, additional: Sequence[str]) -> ExternalProgram:
    """Enable `additional` controllers if the program is a kube-controller-manager and the user selects none."""
    is_selected = any(text.startswith(CONTROLLERS_FLAG) for text in program.arguments)
    if is_selected or not additional or program.folder != CONTROLLER_MANAGER:
        return program
    return replace(
        program,
        arguments=(*program.arguments, CONTROLLERS_FLAG + ",".join((*_enabled_controllers(program), *additional))),
    )


def runs_node_lifecycle(program: ExternalProgram) -> bool:
    """Return whether the program runs the node lifecycle controller (Kubernetes: IsControllerEnabled)."""
    names = _enabled_controllers(program)
    return NODE_LIFECYCLE in names or ("*" in names and f"-{NODE_LIFECYCLE}" not in names)


def _enabled_controllers(program: ExternalProgram) -> list[str]:
    texts = [text for text in (*program.start.arguments, *program.arguments) if text.startswith(CONTROLLERS_FLAG)]
    return texts[-1].removeprefix(CONTROLLERS_FLAG).split(",") if texts else []
