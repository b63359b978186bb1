"""The first thing a scheduler is told: what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batkube.batsim.jobs import Workloads
from batkube.batsim.machines import LiveMachine, Machines
from batkube.batsim.messages import JsonObject
from batkube.batsim.options import Options
from batkube.workloads.batsim import BatsimDocument


def beginning(
    machines: Machines, documents: Mapping[str, BatsimDocument], options: Options, workloads: Workloads
) -> JsonObject:
    """Return how a simulation is described to its scheduler."""
    storage = [machine for machine in machines.all if machine.is_storage]
    compute = [machine for machine in machines.all if not machine.is_storage]
    return {
        "nb_resources": len(machines.all),
        "nb_compute_resources": len(compute),
        "nb_storage_resources": len(storage),
        "allow_compute_sharing": options.allows_compute_sharing,
        "allow_storage_sharing": options.allows_storage_sharing,
        "config": options.configuration(),
        "compute_resources": _described(compute),
        "storage_resources": _described(storage),
        "workloads": {name: document.workload.source for name, document in documents.items()},
        "profiles": dict(workloads.profile_descriptions()),
    }


def _described(machines: Sequence[LiveMachine]) -> list[JsonObject]:
    """Return machines as SIMULATION_BEGINS describes them."""
    return [
        {
            "id": machine.id,
            "name": machine.name,
            "state": machine.state,
            "properties": machine.properties,
            "zone_properties": machine.zone_properties,
        }
        for machine in machines
    ]
