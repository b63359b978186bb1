"""The first thing a scheduler is told: what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from batkube.batsim.protocol.messages import JsonObject
from batkube.batsim.state.jobs import JobRegistry
from batkube.batsim.state.machines import LiveMachine, Machines
from batkube.batsim.state.options import Options


def describe_simulation(
    machines: Machines, sources: Mapping[str, str], options: Options, workloads: JobRegistry
) -> JsonObject:
    """Return how a simulation is described to its scheduler; `sources` has the file of each workload."""
    storage = [machine for machine in machines.all if machine.is_storage]
    compute = [machine for machine in machines.all if not machine.is_storage]
    return {
        "nb_resources": len(machines.all),
        "nb_compute_resources": len(compute),
        "nb_storage_resources": len(storage),
        "allow_compute_sharing": options.allows_compute_sharing,
        "allow_storage_sharing": options.allows_storage_sharing,
        "config": options.to_config(),
        "compute_resources": _describe_machines(compute),
        "storage_resources": _describe_machines(storage),
        # Files are told with the folder we are in before them, as it is (Batsim: absolute_filename).
        "workloads": {name: str(Path.cwd() / source) for name, source in sources.items()},
        "profiles": dict(workloads.profile_descriptions()),
    }


def _describe_machines(machines: Sequence[LiveMachine]) -> list[JsonObject]:
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
