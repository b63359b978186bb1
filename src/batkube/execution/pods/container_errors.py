"""Why a container cannot be started, as a kubelet finds out: its image cannot be had, or its mounts make no sense.

Kubernetes: pkg/kubelet/images/image_manager.go and kubelet_pods.go (makeMounts).
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
    """What is in the way of a container."""

    reason: str
    message: str
    events: tuple[EventNote, ...]
    #: Reason and message from a moment later on, until it is tried again.
    back_off_status: tuple[str, str] | None = None
    #: Whether it is tried again ever more seldom.
    is_backed_off: bool = False


def start_failure_of(pod: KubeObject, container: KubeObject, rule: ContainerBehaviour) -> StartFailure | None:
    """Return why a container of which a rule says `rule` cannot be started now, or None."""
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
    later = "ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {problem}'
    return StartFailure("ErrImagePull", problem, events, later, is_backed_off=True)


def _sub_path_problem(expression: str, pod: KubeObject, container: KubeObject) -> str:
    """Return what is wrong with the path that a subPathExpr stands for, or ""."""
    environment = environment_of(pod, container)
    variables = environment.variables
    missing = [name for name in _REFERENCE.findall(expression) if name not in variables]
    if missing and environment.is_complete:
        return f"missing value for {', '.join(f'{name!r}' for name in missing)}"
    if any(variables.get(name) is None for name in _REFERENCE.findall(expression)):
        return ""  # its value stands elsewhere, and is taken to be a good one
    path = _REFERENCE.sub(lambda match: variables[match[1]] or "", expression)
    if path.startswith("/"):
        return f"error SubPath `{path}` must not be an absolute path"
    if ".." in path.split("/"):
        return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""
