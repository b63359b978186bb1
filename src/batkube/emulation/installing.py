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
from batkube.emulation.access import Access, RefusedByCluster
from batkube.emulation.plane import ControlPlane
from batkube.emulation.plane_commands import free_ports
from batkube.platforms.reading import read_platform
from batkube.programs.choice import outside_programs
from batkube.programs.command_lines import ProgramFolder, command_line_with, names_served
from batkube.programs.prerequisites import Prerequisites, prerequisites_of
from batkube.scenarios.scenario import Scenario

#: A scheduler is left alone for so long after its start: it lists what is there.
_WARM_UP_S = 8.0
_SERVER = "kube-apiserver"


def install(plane: ControlPlane, title: str, platform: str, folder: Path) -> str:
    """Install a scheduler of the catalogue on a plane with these nodes; return the name that it serves."""
    programs = outside_programs(Scenario(workloads=(), platform=platform, scheduler=title), None)
    _apply(plane, prerequisites_of(programs, read_platform(platform).machines, ResourceModel.REQUESTS))
    for program in programs:
        own = folder / program.name
        own.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        command = command_line_with(
            plane.kubeconfig, program, ProgramFolder(own, str(own)), port, program.configuration
        )
        plane.start(program.name.partition("@")[0], command)
    plane.rest(_WARM_UP_S)
    return names_served(programs[0])[0]


def _apply(plane: ControlPlane, prerequisites: Prerequisites) -> None:
    """Create what programs need, definitions first; what is of a kind of theirs waits until that is served."""
    access = Access(plane.kubeconfig)
    collections: dict[tuple[str, str], str] = {}
    for _, fields in prerequisites:
        if fields["kind"] == "CustomResourceDefinition":
            access.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fields)
            collections.update(_collections_of(fields))
            continue
        collection = collections[fields["apiVersion"], fields["kind"]]
        namespace = fields["metadata"].get("namespace")
        path = f"/apis/{fields['apiVersion']}/{f'namespaces/{namespace}/' if namespace else ''}{collection}"
        plane.wait_for(f"the kind {fields['kind']}", partial(_is_served, access, path), _SERVER)
        access.create(path, fields)
    for version in dict.fromkeys(version for version, _ in collections):
        plane.wait_for(version, partial(_is_served, access, f"/apis/{version}"), _SERVER)


def _is_served(access: Access, path: str) -> bool:
    """Say whether there is something at a path; a server that is still making it ready asks for patience (429)."""
    try:
        return access.exists(path)
    except RefusedByCluster:
        return False


def _collections_of(definition: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the collections that a definition makes, by version and kind."""
    spec = definition["spec"]
    for version in spec["versions"]:
        if version["served"]:
            yield (f"{spec['group']}/{version['name']}", spec["names"]["kind"]), spec["names"]["plural"]
