"""XML files of hwloc, from before and since version 2, are read as graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.graph import read_graph
from batkube.graph.resources import CONTAINMENT
from batkube.kernel.errors import InputError

CORES = '<object type="Core"><object type="PU"/></object>'
DISK = """<object type="Bridge"><object type="PCIDev"><object type="OSDev" name="sda" osdev_type="0">
<info name="Size" value="2000000000"/><info name="LinuxDeviceID" value="8:0"/></object></object></object>"""
GPU = '<object type="Bridge"><object type="OSDev" name="{name}" osdev_type="{kind}"/></object>'
MACHINE = """<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc.dtd"><topology>
<object type="Machine"><info name="HostName" value="corona11"/>{inside}</object></topology>"""


def paths(tmp_path: Path, inside: str, *allowed: str) -> list[str]:
    file = tmp_path / "machine.xml"
    file.write_text(MACHINE.format(inside=inside), encoding="utf-8")
    graph = read_graph(file, "hwloc", allowed)
    return [path.removeprefix("/cluster0/corona11") for path in graph.paths[CONTAINMENT].values()][2:]


def test_sockets_and_cores_are_numbered_across_the_machine(tmp_path: Path) -> None:
    package = f'<object type="Package"><object type="L3Cache">{CORES}</object></object>'

    result = paths(tmp_path, 2 * package, "node", "socket", "core")

    assert result == ["/socket0", "/socket0/core0", "/socket1", "/socket1/core1"]


def test_the_node_has_the_host_name_and_a_rank(tmp_path: Path) -> None:
    file = tmp_path / "machine.xml"
    file.write_text(MACHINE.format(inside=""), encoding="utf-8")

    graph = read_graph(file, "hwloc")

    assert (graph.name[1], graph.basename[1], graph.id[1], graph.rank[1]) == ("corona11", "corona", 11, 0)


def test_devices_in_a_numa_node_of_an_old_file_come_after_its_cores(tmp_path: Path) -> None:
    inside = f'<object type="Package"><object type="NUMANode">{2 * CORES}{DISK}</object>{CORES}</object>'

    result = paths(tmp_path, inside, "node", "socket", "core", "storage")

    assert result == ["/socket0", "/socket0/core0", "/socket0/core1", "/socket0/storage0", "/socket0/core2"]


def test_devices_beside_the_only_socket_of_a_numa_node_belong_to_it(tmp_path: Path) -> None:
    gpu = GPU.format(name="cuda3", kind=5)
    inside = f'<object type="NUMANode"><object type="Package">{CORES}</object>{gpu}</object>'

    assert paths(tmp_path, inside, "socket", "gpu", "node") == ["/socket0", "/socket0/gpu3"]


@pytest.mark.parametrize(
    ("name", "kind", "number"), [("cuda1", 5, 1), ("rsmi2", 1, 2), ("opencl0d4", 5, 4), ("card0", 1, None)]
)
def test_gpus_are_numbered_by_name(name: str, kind: int, number: int | None, tmp_path: Path) -> None:
    result = paths(tmp_path, GPU.format(name=name, kind=kind), "node", "gpu")

    assert result == ([] if number is None else [f"/gpu{number}"])


def test_a_disk_has_its_size_in_gigabytes_and_its_device_id(tmp_path: Path) -> None:
    file = tmp_path / "machine.xml"
    file.write_text(MACHINE.format(inside=DISK), encoding="utf-8")

    graph = read_graph(file, "hwloc")

    [disk] = graph.by_type["storage"]
    assert (graph.size[disk], graph.properties[disk]) == (2000, {"LinuxDeviceID": "8:0"})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<topology>", "broken XML"),
        ("<topology/>", "exactly one outermost"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><topology><object type="Machine"/></topology>', "entity"),
        (150 * '<object type="Group">' + 150 * "</object>", "nested"),
        (MACHINE.format(inside=DISK.replace("2000000000", "many")), "has no size"),
    ],
)
def test_an_invalid_file_is_rejected_with_the_line(content: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "machine.xml"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(InputError, match=problem) as caught:
        read_graph(file, "hwloc")

    assert caught.value.at
