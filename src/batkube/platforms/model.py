"""Machines and platforms, independent of the file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.quantities import CPU

#: The default maximum number of pods of a kubelet (Kubernetes: KubeletConfiguration.maxPods).
DEFAULT_PODS = 110
#: The effects of taints that repel pods.
REPELLING_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine. Its `id` is its position in the platform, as in Batsim's output files."""

    id: int
    name: str
    #: The allocatable amounts by resource name: cpu in millicores, others in whole units (memory: bytes). Always
    #: contains cpu and pods.
    capacity: Mapping[str, int]
    #: The speed of one core in flops per second; None if the description has none.
    speed_flops: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Kubernetes taints, as in a Node's spec.
    taints: Sequence[Mapping[str, str]] = ()
    #: Other fields of a Node manifest, by section: `{"metadata": {"annotations": …}, "status": …}`.
    node: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: The SimGrid properties of the machine (energy, role, …), and its attributes `speed` and `pstate`, as text.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: The properties of the SimGrid zones that contain it.
    zone_properties: Mapping[str, str] = field(default_factory=dict)
    #: The id of the innermost SimGrid zone or cluster that contains it; "" if there is none.
    zone: str = ""

    @property
    def takes_any_pod(self) -> bool:
        """Whether it accepts pods without tolerations, such as those of a workload's jobs."""
        return not self.is_cordoned and not any(taint["effect"] in REPELLING_EFFECTS for taint in self.taints)

    @property
    def is_cordoned(self) -> bool:
        """Whether its node is unschedulable at the start of the run."""
        return self.node.get("spec", {}).get("unschedulable", False) is True

    @property
    def cpu_milli(self) -> int:
        """The cpu capacity in millicores."""
        return self.capacity[CPU]


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform; `machines[i].id == i`."""

    source: str
    machines: tuple[Machine, ...]
    #: Notes on what the reader omitted or assumed, with their counts.
    notes: tuple[tuple[FidelityNote, int], ...] = ()
    #: The number of links of the file, and its storage hosts, which run nothing.
    link_count: int = 0
    storages: tuple[str, ...] = ()

    @property
    def slowest(self) -> Machine:
        """The machine with the lowest speed; a machine without a speed counts as 0."""
        return min(self.machines, key=lambda machine: machine.speed_flops or 0.0)
