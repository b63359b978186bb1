"""Machines and platforms, whatever file they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.quantities import CPU

#: Pods a kubelet accepts unless told otherwise (Kubernetes: KubeletConfiguration.maxPods).
DEFAULT_PODS = 110
#: Effects of taints that keep pods away.
REPELLING_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine. Its `id` is its position in the platform, the number Batsim's outputs show."""

    id: int
    name: str
    #: What pods may use, by resource name: cpu in millicores, others in whole units (memory: bytes). Always has
    #: cpu and pods.
    capacity: Mapping[str, int]
    #: Flops per second of one core; None when the description gives none.
    speed_flops: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Kubernetes taints, as in a Node's spec.
    taints: Sequence[Mapping[str, str]] = ()
    #: More of a Node manifest by section, for the simulated node: `{"metadata": {"annotations": …}, "status": …}`.
    node: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Everything else the file says of the machine (SimGrid properties: energy, roles, …), kept as text.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Properties of the SimGrid zones around it.
    zone_properties: Mapping[str, str] = field(default_factory=dict)
    #: The id of the SimGrid zone or cluster right around it; "" where there is none.
    zone: str = ""

    @property
    def takes_any_pod(self) -> bool:
        """Whether neither a taint nor a cordon keeps away pods which tolerate none, as those of a workload's jobs."""
        return not self.is_cordoned and not any(taint["effect"] in REPELLING_EFFECTS for taint in self.taints)

    @property
    def is_cordoned(self) -> bool:
        """Whether its node is unschedulable when the run begins."""
        return self.node.get("spec", {}).get("unschedulable", False) is True

    @property
    def cpu_milli(self) -> int:
        """Its cpu capacity in millicores."""
        return self.capacity[CPU]


@dataclass(frozen=True, slots=True)
class Platform:
    """Machines; `machines[i].id == i`."""

    source: str
    machines: tuple[Machine, ...]
    #: What reading it had to leave out or assume, each with how often.
    notes: tuple[tuple[FidelityNote, int], ...] = ()
    #: How many links its file describes, and the hosts of it that store data and run nothing.
    link_count: int = 0
    storages: tuple[str, ...] = ()

    @property
    def slowest(self) -> Machine:
        """The machine of the lowest speed; one without any is the slowest of all."""
        return min(self.machines, key=lambda machine: machine.speed_flops or 0.0)
