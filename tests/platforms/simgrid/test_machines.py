"""Machines of SimGrid platform files, as Batsim counts and orders them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS
from batkube.platforms.model import DEFAULT_PODS, Platform
from batkube.platforms.reader import read_platform
from batkube.platforms.simgrid.numbering import natural_sort_key

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'


Read = Callable[..., Platform]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes a platform file with a body, and reads it."""

    def write_and_read(body: str, head: str = HEAD) -> Platform:
        path = tmp_path / "platform.xml"
        path.write_text(f'{head}<platform version="4.1">\n{body}\n</platform>\n')
        return read_platform(str(path))

    return write_and_read


def names(platform: Platform) -> list[str]:
    return [machine.name for machine in platform.machines]


def test_by_default_a_host_is_a_machine_with_one_core_and_without_memory(read: Read) -> None:
    platform = read('<zone id="z" routing="Full"><host id="a" speed="1Gf"/></zone>')

    (machine,) = platform.machines
    assert machine.capacity == {CPU: 1000, PODS: DEFAULT_PODS}
    assert machine.speed_flops == 1e9


def test_resource_properties_take_precedence_over_the_attribute_core(read: Read) -> None:
    platform = read(
        """<zone id="z" routing="Full">
        <host id="a" speed="1Gf" core="4">
          <prop id="core" value="6"/><prop id="memory" value="4Gi"/>
          <prop id="gpu" value="2"/><prop id="pods" value="250"/>
        </host>
        <host id="b" speed="1Gf" core="4"/>
        </zone>"""
    )

    first, second = platform.machines
    assert first.capacity == {CPU: 6000, MEMORY: 4 * 1024**3, GPU: 2, PODS: 250}
    assert second.capacity[CPU] == 4000


def test_masters_and_storage_hosts_are_not_machines(read: Read) -> None:
    platform = read(
        """<zone id="z" routing="Full">
        <host id="boss" speed="1Gf"><prop id="role" value="master"/></host>
        <host id="disk" speed="0f"><prop id="role" value="storage"/></host>
        <host id="worker" speed="1Gf"><prop id="role" value="compute_node"/></host>
        <host id="other" speed="1Gf"/>
        </zone>"""
    )

    assert names(platform) == ["other", "worker"]


@pytest.mark.parametrize("name", ["master_host", "master_host0"])
def test_without_a_master_role_the_host_with_batsims_default_name_is_the_master(read: Read, name: str) -> None:
    platform = read(f'<zone id="z" routing="Full"><host id="{name}" speed="1Gf"/><host id="a" speed="1Gf"/></zone>')

    assert names(platform) == ["a"]


def test_with_a_master_role_the_default_name_has_no_meaning(read: Read) -> None:
    platform = read(
        """<zone id="z" routing="Full">
        <host id="master_host" speed="1Gf"/>
        <host id="boss" speed="1Gf"><prop id="role" value="master"/></host>
        </zone>"""
    )

    assert names(platform) == ["master_host"]


def test_a_cluster_is_expanded_and_its_hosts_have_its_properties(read: Read) -> None:
    platform = read(
        """<zone id="z" routing="Full">
        <cluster id="c" prefix="node-" suffix=".org" radical="0-2,5" speed="2Gf" core="8" bw="1MBps" lat="1us">
          <prop id="memory" value="1Gi"/>
        </cluster></zone>"""
    )

    assert names(platform) == ["node-0.org", "node-1.org", "node-2.org", "node-5.org"]
    assert all(m.capacity[CPU] == 8000 and m.capacity[MEMORY] == 1024**3 for m in platform.machines)
    assert all(m.speed_flops == 2e9 for m in platform.machines)


def test_zone_properties_are_inherited_and_those_of_inner_zones_take_precedence(read: Read) -> None:
    platform = read(
        """<zone id="outer" routing="Full">
        <prop id="site" value="nancy"/><prop id="rack" value="?"/>
        <zone id="inner" routing="Full"><prop id="rack" value="7"/><host id="a" speed="1Gf"/></zone>
        <host id="b" speed="1Gf"/>
        </zone>"""
    )

    first, second = platform.machines
    assert first.zone_properties == {"site": "nancy", "rack": "7"}
    assert second.zone_properties == {"site": "nancy", "rack": "?"}
    assert "rack" not in first.properties


def test_files_of_simgrid_3_are_read(read: Read) -> None:
    platform = read('<AS id="z" routing="Full"><host id="a" power="1000000000"/></AS>')

    assert platform.machines[0].speed_flops == 1e9


@pytest.mark.parametrize(
    ("attributes", "flops"),
    [
        ('speed="16.673E9f"', 16.673e9),
        ('speed="16.673E9flops"', 16.673e9),
        ('speed="3 megaflops"', 3e6),
        ('speed="100.0Mf, 88Mf, 1e-9Mf"', 100e6),
        ('speed="100.0Mf, 88Mf, 1e-9Mf" pstate="1"', 88e6),
        ('speed="1Tf"', 1e12),
        ('speed="1kf"', 1e3),
    ],
)
def test_the_speed_is_that_of_the_initial_power_state(read: Read, attributes: str, flops: float) -> None:
    platform = read(f'<zone id="z" routing="Full"><host id="a" {attributes}/></zone>')

    assert platform.machines[0].speed_flops == pytest.approx(flops, rel=1e-12)


def test_all_speeds_and_energy_properties_are_kept(read: Read) -> None:
    platform = read(
        """<zone id="z" routing="Full"><host id="a" speed="2Gf, 1Gf" pstate="1">
        <prop id="wattage_per_state" value="95:190, 93:170"/></host></zone>"""
    )

    assert platform.machines[0].properties == {
        "speed": "2Gf, 1Gf",
        "pstate": "1",
        "wattage_per_state": "95:190, 93:170",
    }


def test_properties_of_links_are_not_zone_properties(read: Read) -> None:
    platform = read(
        """<zone id="z" routing="Full"><link id="l" bandwidth="1Bps" latency="0"><prop id="memory" value="x"/></link>
        <host id="a" speed="1Gf"/></zone>"""
    )

    assert platform.machines[0].zone_properties == {}


def test_machines_are_in_the_natural_order_of_their_names(read: Read) -> None:
    hosts = "".join(f'<host id="{name}" speed="1Gf"/>' for name in ["host10", "host2", "a-9", "host002", "a-10"])

    platform = read(f'<zone id="z" routing="Full">{hosts}</zone>')

    assert names(platform) == ["a-9", "a-10", "host002", "host2", "host10"]


def batsim_comparison(first: str, second: str) -> int:
    """Compare names character by character, as Batsim does (string_numeric_comparator in src/machines.cpp)."""
    i = j = 0
    while i < len(first) and j < len(second):
        if first[i] in "0123456789" and second[j] in "0123456789":
            end_i, end_j = i, j
            while end_i < len(first) and first[end_i] in "0123456789":
                end_i += 1
            while end_j < len(second) and second[end_j] in "0123456789":
                end_j += 1
            if int(first[i:end_i]) != int(second[j:end_j]):
                return int(first[i:end_i]) - int(second[j:end_j])
            i, j = end_i, end_j
        elif first[i] != second[j]:
            return ord(first[i]) - ord(second[j])
        else:
            i, j = i + 1, j + 1
    return (i < len(first)) - (j < len(second))


@given(st.lists(st.text("ab-0129.", max_size=8), max_size=12))
def test_the_natural_order_is_that_of_batsims_comparator(host_names: list[str]) -> None:
    assert sorted(host_names, key=lambda name: natural_sort_key(name)[0]) == sorted(
        host_names, key=functools.cmp_to_key(batsim_comparison)
    )


@pytest.mark.parametrize(
    ("body", "at", "problem"),
    [
        ('<zone id="z"><host id="a" speed="1Gf"/><host id="a" speed="1Gf"/></zone>', "'a'", "two machines"),
        ('<zone id="z"><host id="master_host" speed="1Gf"/></zone>', None, "no machine"),
        ('<zone id="z">\n<host id="a" speed="1Gf" core="many"/></zone>', "line 5, host 'a', core", "not a quantity"),
        ('<zone id="z"><host id="a" speed="1Gf" core="0"/></zone>', "core", "has no cpu"),
        ('<zone id="z"><host id="a" speed="1Gf"><prop id="memory" value="4GB"/></host></zone>', "memory", "4GB"),
        ('<zone id="z"><host id="a" speed="1Gf"><prop id="role" value="mster"/></host></zone>', "'a'", "unknown role"),
        ('<zone id="z"><host id="a" speed="fast"/></zone>', "speed", "not a positive speed"),
        ('<zone id="z"><host id="a" speed="0f"/></zone>', "speed", "not a positive speed"),
        ('<zone id="z"><host id="a" speed="1Gf" pstate="2"/></zone>', "pstate", "not a power state"),
        ('<zone id="z"><host speed="1Gf"/></zone>', "line 4", "has no id"),
        (
            '<zone id="z"><cluster id="c" prefix="n" radical="3-1" speed="1Gf"/></zone>',
            "radical",
            "not a list of host numbers",
        ),
        ('<zone id="z"><cluster id="c" prefix="n" speed="1Gf"/></zone>', "radical", "not a list of host numbers"),
        ('<zone id="z"><cluster id="c" prefix="n" radical="0-99999999999" speed="1Gf"/></zone>', "line 4", "more than"),
        ('<include file="other.xml"/>', "line 4", "not supported"),
        ('<zone id="z">\n<host id="a" speed="1Gf">\n</zone>', "line 6", "broken XML"),
        ("<zone>" * 200, "line 4", "nested"),
    ],
)
def test_errors_name_the_place_in_the_file(read: Read, body: str, at: str | None, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        read(body)

    assert at is None or at in (error.value.at or "")


def test_an_entity_bomb_is_rejected_at_its_declaration(read: Read) -> None:
    bomb = '<!DOCTYPE platform [\n<!ENTITY a "ha">\n<!ENTITY b "&a;&a;&a;&a;&a;&a;">\n]>\n'

    with pytest.raises(InputError, match="entities are not allowed") as error:
        read('<zone id="&b;"/>', head=bomb)

    assert error.value.at == "line 2"


def test_empty_lines_before_the_xml_declaration_are_allowed_and_counted(read: Read) -> None:
    body = '<zone id="z"><host id="a" speed="1Gf"/></zone>'

    assert names(read(body, head="\n\n" + HEAD)) == ["a"]
    with pytest.raises(InputError) as error:
        read(body + "</zone>", head="\n\n" + HEAD)

    assert error.value.at == "line 6"


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("batsim/platforms/cluster512.xml", 512),
        ("batsim/platforms/cluster512_pfs.xml", 512),
        ("batsim/platforms/cluster_energy_128.xml", 128),
        ("batsim/platforms/cluster_locality_4x128.xml", 4 * 128),
        ("batsim/platforms/cluster_locality_32x16.xml", 32 * 16),
        ("batsim/platforms/energy_platform_homogeneous_no_net_128.xml", 128),
        ("batsim/platforms/graphene.xml", 144),
        ("batsim/platforms/properties_example.xml", 7),
        ("batsim/platforms/small_platform.xml", 4),
        ("batsim/platforms/heterogeneous/platform.xml", 15),
        ("batkube/platforms/cluster16.xml", 16),
    ],
)
def test_batsims_platforms_have_as_many_machines_as_in_batsim(shared_data: Path, name: str, count: int) -> None:
    platform = read_platform(str(shared_data / name))

    assert len(platform.machines) == count


def test_every_platform_of_batsim_and_batkube_can_be_read(shared_data: Path) -> None:
    paths = sorted(shared_data.glob("bat*/platforms/**/*.xml"))

    machines = {path: len(read_platform(str(path)).machines) for path in paths}

    assert len(paths) >= 28
    assert all(machines.values())


def test_the_platforms_of_the_2020_experiments_have_their_published_capacities(shared_data: Path) -> None:
    burst = read_platform(str(shared_data / "batkube/platforms/platform_graphene_16nodes.xml"))
    realistic = read_platform(str(shared_data / "batkube/platforms/1node_6core.xml"))

    assert len(burst.machines) == 16
    assert all(m.capacity[CPU] == 1000 and m.capacity[MEMORY] == 4 * 1024**3 for m in burst.machines)
    assert [m.capacity[CPU] for m in realistic.machines] == [6000]


def test_hosts_of_batsims_example_have_its_zone_properties(shared_data: Path) -> None:
    platform = read_platform(str(shared_data / "batsim/platforms/properties_example.xml"))

    by_name = {machine.name: machine for machine in platform.machines}
    assert by_name["host1"].zone_properties == {"Foo": "bar", "bla": "bli"}
    assert by_name["host1"].properties["Hdd"] == "180"
    assert by_name["node-3.simgrid.org"].properties["zone_name"] == "acme cluster"
