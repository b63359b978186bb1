"""Objects that must exist before programs start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batkube.cluster.mapping import ResourceModel
from batkube.cluster.world import World
from batkube.kernel.errors import InputError
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.programs.program import ExternalProgram
from batkube.programs.selection.prerequisites import install, prerequisites_of
from batkube.programs.startup.launch import make_server
from batkube.schedulers.build.records import DEFINITIONS
from batkube.schedulers.definitions import encode_definitions
from batkube.schedulers.named_programs import ProgramStart

KIND: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "queues.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Queue", "plural": "queues"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
QUEUE: dict[str, Any] = {
    "apiVersion": "example.org/v1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {
        "for": "{scheduler-name}",
        "groups": [{"covers": ["{resource}"], "flavors": [{"sums": [{"name": "{resource}", "all": "{total}"}]}]}],
    },
}


def program_in(folder: Path, *, name: str = "queueing") -> ExternalProgram:
    start = ProgramStart((), {}, name, definitions=("crds",), objects=(QUEUE,))
    return ExternalProgram(name, folder / name, start)


def test_definitions_come_first_without_duplicates_and_objects_contain_cluster_totals(tmp_path: Path) -> None:
    (tmp_path / DEFINITIONS).write_bytes(encode_definitions([KIND]))
    platform = read_platform("4x2,8Gi")

    prerequisites = prerequisites_of(
        [program_in(tmp_path), program_in(tmp_path, name="other")], platform.machines, ResourceModel.MACHINES
    )

    assert [fields["kind"] for _, fields in prerequisites] == ["CustomResourceDefinition", "Queue"]
    spec = prerequisites[1][1]["spec"]
    [group] = spec["groups"]
    sums = {row["name"]: row["all"] for row in group["flavors"][0]["sums"]}
    assert spec["for"] == "queueing"
    assert group["covers"] == list(sums)
    assert (sums["cpu"], sums["memory"], sums["batkube.io/machine"]) == ("8", "32Gi", "4")


def test_prerequisites_are_applied_through_the_api(tmp_path: Path) -> None:
    (tmp_path / DEFINITIONS).write_bytes(encode_definitions([KIND]))
    prerequisites = prerequisites_of([program_in(tmp_path)], read_platform("1x1").machines, ResourceModel.REQUESTS)
    world = World(Streams(0))
    server = make_server(world)

    install(prerequisites, server.api.manifest_client(server.token))

    assert list(world.store.all("queues.example.org")) == ["default"]


def test_missing_definitions_are_reported_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the definitions of its kinds are missing") as raised:
        prerequisites_of([program_in(tmp_path)], [], ResourceModel.REQUESTS)
    assert "`batkube schedulers build queueing`" in str(raised.value)


def test_an_object_without_a_definition_is_rejected_with_program_and_name(tmp_path: Path) -> None:
    (tmp_path / DEFINITIONS).write_bytes(encode_definitions([]))
    prerequisites = prerequisites_of([program_in(tmp_path)], [], ResourceModel.REQUESTS)
    server = make_server(World(Streams(0)))

    with pytest.raises(InputError) as raised:
        install(prerequisites, server.api.manifest_client(server.token))
    assert str(raised.value).startswith(
        "program 'queueing': Queue default: is rejected by the API: "
        'no matches for kind "Queue" in version "example.org/v1"'
    )
