"""Errors that prevent the start of a container: its image cannot be pulled, or a mount is invalid.

Kubernetes: pkg/kubelet/images/image_manager.go, and pkg/kubelet/kubelet_pods.go, makeMounts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from batkube.cluster.event_recorder import EventNote
from batkube.cluster.store import KubeObject
from batkube.execution.scripts.environment import environment_of
from batkube.workloads.container_rules.rules import ContainerBehaviour

_REFERENCE = re.compile(r"\$\(([^)]*)\)")


class StartFailure(NamedTuple):
    """Why a container could not be started."""

    reason: str
    message: str
    events: tuple[EventNote, ...]
    #: Reason and message of the back-off that follows, until the next attempt.
    back_off_status: tuple[str, str] | None = None
    #: Whether the delay between attempts grows.
    is_backed_off: bool = False


def start_failure_of(pod: KubeObject, container: KubeObject, rule: ContainerBehaviour) -> StartFailure | None:
    """Return why a container with the behaviour `rule` cannot be started now, or None."""
    if rule.pull_fails:
        return _image_pull_failure(container["image"])
    for mount in container.get("volumeMounts") or ():
        problem = _sub_path_problem(mount["subPathExpr"], pod, container) if mount.get("subPathExpr") else ""
        if problem:
            return StartFailure(
                "CreateContainerConfigError", problem, (EventNote("Warning", "Failed", f"Error: {problem}"),)
            )
    return None


def _image_pull_failure(image: str) -> StartFailure:
    problem = f'failed to pull image "{image}": not found'
    events = (
        EventNote("Normal", "Pulling", f'Pulling image "{image}"'),
        EventNote("Warning", "Failed", f'Failed to pull image "{image}": not found'),
        EventNote("Warning", "Failed", "Error: ErrImagePull"),
    )
    back_off_status = "ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {problem}'
    return StartFailure("ErrImagePull", problem, events, back_off_status, is_backed_off=True)


def _sub_path_problem(expression: str, pod: KubeObject, container: KubeObject) -> str:
    """Return why the path of a subPathExpr is invalid, or ""."""
    environment = environment_of(pod, container)
    variables = environment.variables
    missing = [name for name in _REFERENCE.findall(expression) if name not in variables]
    if missing and environment.is_complete:
        return f"missing value for {', '.join(f'{name!r}' for name in missing)}"
    if any(variables.get(name) is None for name in _REFERENCE.findall(expression)):
        return ""  # its value comes from another object, and is assumed to be valid
    path = _REFERENCE.sub(lambda match: variables[match[1]] or "", expression)
    if path.startswith("/"):
        return f"error SubPath `{path}` must not be an absolute path"
    if ".." in path.split("/"):
        return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""
