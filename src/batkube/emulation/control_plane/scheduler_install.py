"""Install schedulers of the catalogue on a real control plane: prerequisites first, then their programs.

The programs are the builds of simulated runs: without the page of the virtual clock, they use real time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from batkube.cluster.mapping import ResourceModel
from batkube.emulation.client.connection import ApiStatusError, ClusterConnection
from batkube.emulation.control_plane.commands import free_ports
from batkube.emulation.control_plane.plane import ControlPlane
from batkube.platforms.reader import read_platform
from batkube.programs.selection.external_programs import external_programs
from batkube.programs.selection.prerequisites import Prerequisites, prerequisites_of
from batkube.programs.startup.command_lines import ProgramFolder, command_line_with_kubeconfig, served_scheduler_names
from batkube.scenarios.scenario import Scenario

#: The time for a scheduler to list all objects after its start.
_WARM_UP_S = 8.0
_API_SERVER = "kube-apiserver"


def install_scheduler(plane: ControlPlane, title: str, platform: str, folder: Path) -> str:
    """Install a scheduler on a control plane with the nodes of a platform; return its schedulerName."""
    programs = external_programs(Scenario(workloads=(), platform=platform, scheduler=title), None)
    _apply(plane, prerequisites_of(programs, read_platform(platform).machines, ResourceModel.REQUESTS))
    for program in programs:
        program_folder = folder / program.name
        program_folder.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        command = command_line_with_kubeconfig(
            plane.kubeconfig, program, ProgramFolder(program_folder, str(program_folder)), port, program.configuration
        )
        plane.start(program.name.partition("@")[0], command)
    plane.wait(_WARM_UP_S)
    return served_scheduler_names(programs[0])[0]


def _apply(plane: ControlPlane, prerequisites: Prerequisites) -> None:
    """Create the prerequisites of programs; wait for a custom kind to be served before creating its objects."""
    cluster = ClusterConnection(plane.kubeconfig)
    collections: dict[tuple[str, str], str] = {}
    for _, obj in prerequisites:
        if obj["kind"] == "CustomResourceDefinition":
            cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", obj)
            collections.update(_collections_of(obj))
            continue
        collection = collections[obj["apiVersion"], obj["kind"]]
        namespace = obj["metadata"].get("namespace")
        path = f"/apis/{obj['apiVersion']}/{f'namespaces/{namespace}/' if namespace else ''}{collection}"
        plane.wait_for(f"the kind {obj['kind']}", partial(_is_served, cluster, path), _API_SERVER)
        cluster.create(path, obj)
    for version in dict.fromkeys(version for version, _ in collections):
        plane.wait_for(version, partial(_is_served, cluster, f"/apis/{version}"), _API_SERVER)


def _is_served(cluster: ClusterConnection, path: str) -> bool:
    """Return whether a path exists; while a CustomResourceDefinition is being established, the server returns 429."""
    try:
        return cluster.exists(path)
    except ApiStatusError:
        return False


def _collections_of(definition: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the collections of a CustomResourceDefinition, by version and kind."""
    spec = definition["spec"]
    for version in spec["versions"]:
        if version["served"]:
            yield (f"{spec['group']}/{version['name']}", spec["names"]["kind"]), spec["names"]["plural"]
