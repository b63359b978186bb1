"""Schedulers of the catalogue on a real control plane, installed as an administrator would: first the definitions of
their kinds and what must be there before they start, then the program and those that belong to it.

They are the builds of simulated runs, whose other clock sleeps where there is no page to read it from.
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

#: A scheduler is left alone for so long after its start: it lists what is there.
_WARM_UP_S = 8.0
_API_SERVER = "kube-apiserver"


def install_scheduler(plane: ControlPlane, title: str, platform: str, folder: Path) -> str:
    """Install a scheduler of the catalogue on a plane with these nodes; return the name that it serves."""
    programs = external_programs(Scenario(workloads=(), platform=platform, scheduler=title), None)
    _apply(plane, prerequisites_of(programs, read_platform(platform).machines, ResourceModel.REQUESTS))
    for program in programs:
        own = folder / program.name
        own.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        command = command_line_with_kubeconfig(
            plane.kubeconfig, program, ProgramFolder(own, str(own)), port, program.configuration
        )
        plane.start(program.name.partition("@")[0], command)
    plane.wait(_WARM_UP_S)
    return served_scheduler_names(programs[0])[0]


def _apply(plane: ControlPlane, prerequisites: Prerequisites) -> None:
    """Create what programs need, definitions first; what is of a kind of theirs waits until that is served."""
    access = ClusterConnection(plane.kubeconfig)
    collections: dict[tuple[str, str], str] = {}
    for _, fields in prerequisites:
        if fields["kind"] == "CustomResourceDefinition":
            access.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fields)
            collections.update(_collections_of(fields))
            continue
        collection = collections[fields["apiVersion"], fields["kind"]]
        namespace = fields["metadata"].get("namespace")
        path = f"/apis/{fields['apiVersion']}/{f'namespaces/{namespace}/' if namespace else ''}{collection}"
        plane.wait_for(f"the kind {fields['kind']}", partial(_is_served, access, path), _API_SERVER)
        access.create(path, fields)
    for version in dict.fromkeys(version for version, _ in collections):
        plane.wait_for(version, partial(_is_served, access, f"/apis/{version}"), _API_SERVER)


def _is_served(access: ClusterConnection, path: str) -> bool:
    """Say whether there is something at a path; a server that is still making it ready asks for patience (429)."""
    try:
        return access.exists(path)
    except ApiStatusError:
        return False


def _collections_of(definition: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the collections that a definition makes, by version and kind."""
    spec = definition["spec"]
    for version in spec["versions"]:
        if version["served"]:
            yield (f"{spec['group']}/{version['name']}", spec["names"]["kind"]), spec["names"]["plural"]
