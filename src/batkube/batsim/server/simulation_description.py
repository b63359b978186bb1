"""The data of SIMULATION_BEGINS: machines, options, workloads and profiles (Batsim: docs/protocol.rst)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from batkube.batsim.protocol.messages import JsonObject
from batkube.batsim.state.jobs import JobRegistry
from batkube.batsim.state.machines import LiveMachine, Machines
from batkube.batsim.state.options import Options


def describe_simulation(
    machines: Machines, sources: Mapping[str, str], options: Options, registry: JobRegistry
) -> JsonObject:
    """Return the description of a simulation; `sources` are the files of the workloads."""
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
        # Paths are prefixed with the working directory and not normalized (Batsim: absolute_filename in batsim.cpp).
        "workloads": {name: str(Path.cwd() / source) for name, source in sources.items()},
        "profiles": dict(registry.profile_descriptions()),
    }


def _describe_machines(machines: Sequence[LiveMachine]) -> list[JsonObject]:
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
