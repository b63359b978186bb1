"""Which of kube-controller-manager's controllers are at work in a run."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.programs.program import OutsideScheduler
from batkube.scenarios.scenario import CONTROLLER_MANAGER

#: The argument that says so.
CONTROLLERS = "--controllers="
NODE_LIFECYCLE = "node-lifecycle-controller"

#: Those that have nothing to do where there is none of these kinds, and watch pods all the same.
_IDLE_WITHOUT = {
    "disruption-controller": frozenset({"PodDisruptionBudget"}),
    "daemonset-controller": frozenset({"DaemonSet"}),
    "statefulset-controller": frozenset({"StatefulSet"}),
    "deployment-controller": frozenset({"Deployment"}),
    "job-controller": frozenset({"Job", "CronJob"}),
}
_WATCHING_PODS = frozenset(
    (
        *_IDLE_WITHOUT,
        NODE_LIFECYCLE,
        "endpointslice-controller",
        "garbage-collector-controller",
        "replicaset-controller",
        "replicationcontroller-controller",
        "resourcequota-controller",
        "taint-eviction-controller",
    )
)
#: So many are told of a pod in an order that is the same in every run (see schedulers/catalogue.yaml).
_IN_ORDER = 8
_OUT_OF_ORDER = FidelityNote(
    "controllers", "more than eight of them watch pods, so that another run may differ in names and in what is first"
)


def with_node_lifecycle(program: OutsideScheduler, kinds: AbstractSet[str] | None) -> OutsideScheduler:
    """Return the program; if it is a run's controllers, looking after nodes, too, unless the user names those at work.

    One that the `kinds` of a run leave idle makes room, if these are all there will be.
    """
    is_named = any(text.startswith(CONTROLLERS) for text in program.arguments)
    if is_named or program.folder != CONTROLLER_MANAGER:
        return program
    idle = [name for name, needed in _IDLE_WITHOUT.items() if kinds is not None and needed.isdisjoint(kinds)]
    names = [name for name in _at_work(program) if name not in idle[:1]]
    return replace(program, arguments=(*program.arguments, CONTROLLERS + ",".join((*names, NODE_LIFECYCLE))))


def watches_nodes(program: OutsideScheduler) -> bool:
    """Return whether it is a kube-controller-manager that looks after nodes (Kubernetes: IsControllerEnabled)."""
    names = _at_work(program)
    return NODE_LIFECYCLE in names or ("*" in names and f"-{NODE_LIFECYCLE}" not in names)


def note_order(program: OutsideScheduler, notes: FidelityNotes) -> None:
    """Say so if a run with these controllers may not repeat itself to the byte."""
    names = _at_work(program)
    if "*" in names or len(_WATCHING_PODS.intersection(names)) > _IN_ORDER:
        notes.add(_OUT_OF_ORDER, example=program.name)


def _at_work(program: OutsideScheduler) -> list[str]:
    texts = [text for text in (*program.start.arguments, *program.arguments) if text.startswith(CONTROLLERS)]
    return texts[-1].removeprefix(CONTROLLERS).split(",") if texts else []
