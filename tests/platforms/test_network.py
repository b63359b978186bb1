"""Networks of SimGrid files: links, zones, routes. That SimGrid finds the same ones is shown in tests/fluid."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.platforms.network import Network
from batkube.platforms.network_lookup import network_of
from batkube.platforms.reader import read_platform
from batkube.platforms.simgrid.network import parse_network
from batkube.platforms.simgrid.power import power_of

CLUSTERS = """
<zone id="all" routing="Full">
  <cluster id="a" prefix="a" suffix="" radical="0-1" speed="1Gf" bw="100MBps" lat="1ms" bb_bw="1GBps" bb_lat="2ms"
           limiter_link="50MBps" loopback_bw="5GBps" loopback_lat="3us"/>
  <cluster id="b" prefix="b" suffix="" radical="0-1" speed="2Gf" core="4" bw="10MBps" lat="1us" sharing_policy="SHARED"
           router_id="door"/>
  <link id="wan" bandwidth="1Gbps" latency="5ms" sharing_policy="SPLITDUPLEX"/>
  <zoneRoute src="a" dst="b" gw_src="aa_router" gw_dst="door"><link_ctn id="wan" direction="UP"/></zoneRoute>
</zone>"""


def network(body: str) -> Network:
    return parse_network(Path("p.xml"), f'<?xml version="1.0"?><platform version="4.1">{body}</platform>'.encode())


def names(net: Network, source: str, target: str) -> list[str]:
    return [link.name for link in net.route(source, target).links]


def test_inside_a_cluster_one_goes_up_over_the_backbone_and_down() -> None:
    net = network(CLUSTERS)

    assert names(net, "a0", "a1") == [
        "a_link_0_limiter", "a_link_0_UP", "a_backbone", "a_link_1_DOWN", "a_link_1_limiter",
    ]  # fmt: skip
    assert net.route("a0", "a1").latency_s == pytest.approx(0.004)
    assert names(net, "a0", "a0") == ["a_link_0_loopback"]
    assert net.route("a0", "a0").links[0].is_fatpipe
    assert names(net, "b0", "b1") == ["b_link_0", "b_link_1"]


def test_between_zones_one_goes_by_their_gateways_and_back_the_other_way() -> None:
    net = network(CLUSTERS)

    assert names(net, "a0", "b1") == ["a_link_0_limiter", "a_link_0_UP", "a_backbone", "wan_UP", "b_link_1"]
    assert names(net, "b1", "a0") == ["b_link_1", "wan_DOWN", "a_backbone", "a_link_0_DOWN", "a_link_0_limiter"]
    assert net.route("a0", "b1").latency_s == pytest.approx(0.008001)
    assert net.hosts["b0"].cores == 4
    assert net.route("a0", "b0").links[3].bandwidth_bps == 125e6


def test_hosts_of_a_vivaldi_zone_are_as_far_as_their_coordinates() -> None:
    hosts = '<host id="x" speed="1f" coordinates="0 0 1"/><host id="y" speed="1f" coordinates="30 40 2"/>'
    net = network(f'<zone id="z" routing="Vivaldi">{hosts}</zone>')

    assert net.route("x", "y") == ((), pytest.approx(0.053))


@pytest.mark.parametrize("routing", ["Floyd", "Dijkstra"])
def test_the_path_of_the_fewest_links_counts(routing: str) -> None:
    hosts = "".join(f'<host id="h{n}" speed="1f"/>' for n in range(4))
    links = "".join(f'<link id="l{n}" bandwidth="1Bps" latency="1s"/>' for n in range(5))
    routes = "".join(f'<route src="h{n}" dst="h{n + 1}"><link_ctn id="l{n}"/></route>' for n in range(3))
    routes += '<route src="h0" dst="h3" symmetrical="NO"><link_ctn id="l3"/><link_ctn id="l4"/></route>'
    net = network(f'<zone id="z" routing="{routing}">{hosts}{links}{routes}</zone>')

    assert names(net, "h0", "h3") == ["l3", "l4"]
    assert names(net, "h3", "h0") == ["l2", "l1", "l0"]
    assert names(net, "h1", "h1") == ["__loopback__"]


def test_cabinets_and_host_links_hang_on_the_backbone_of_their_zone() -> None:
    net = network(
        '<zone id="z" routing="Cluster"><link id="wire" bandwidth="2MBps" latency="1ms"/>'
        '<host id="lone" speed="1f"/><host_link id="lone" up="wire" down="wire"/>'
        '<cabinet id="c" prefix="n" suffix="" radical="0-1" speed="1f" bw="1MBps" lat="1ms"/>'
        '<backbone id="bb" bandwidth="9MBps" latency="2ms"/></zone>'
    )

    assert names(net, "lone", "n1") == ["wire", "bb", "link_n1_DOWN"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<zone id="z" routing="Wifi"/>', "'wifi' are not modelled"),
        ('<cluster id="c" prefix="n" suffix="" radical="0-1" speed="1f" bw="1" topology="TORUS"/>', "'TORUS'"),
        ('<zone id="z" routing="Full"><link id="l" bandwidth="1 apple" latency="0"/></zone>', "not a bandwidth"),
        ('<zone id="z" routing="Full"><link id="l" bandwidth="1" latency="x"/></zone>', "not a latency"),
        ('<zone id="z" routing="Full"><host id="a" speed="1f"/><host id="a" speed="1f"/></zone>', "is taken"),
        ('<zone id="z" routing="Full"><host id="a" speed="1f"/><route src="a" dst="q"/></zone>', "not in its zone"),
        ('<zone id="z" routing="Full"><bypassRoute src="a" dst="b"/></zone>', "bypass routes"),
        (
            '<zone id="z" routing="Full"><host id="a" speed="1f"/><link id="l" bandwidth="1" latency="0" '
            'sharing_policy="SPLITDUPLEX"/><route src="a" dst="a"><link_ctn id="l"/></route></zone>',
            "two directions",
        ),
    ],
)
def test_what_is_not_modelled_or_wrong_is_refused_with_its_line(body: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        network(body)

    assert caught.value.at is not None
    assert caught.value.at.startswith("line 1")


def test_watts_are_those_of_the_load_in_a_state() -> None:
    value = "30:40:100, 9:9"
    prop = f'<prop id="wattage_per_state" value="{value}"/><prop id="sleep_pstates" value="1:1:1"/>'
    net = network(f'<zone id="z" routing="Full"><host id="a" speed="1Gf,1f">{prop}</host></zone>')
    power = power_of("p.xml", net.hosts["a"])

    assert power is not None
    assert [power.draws[0].at(load) for load in (0, 0.5, 1)] == [30, 70, 100]
    assert [power.can_compute_in(pstate) for pstate in (0, 1, 2)] == [True, False, False]


@pytest.mark.parametrize("value", ["1", "1:2:3:4", "a:b", "1:2,3:4"])
def test_bad_watts_are_refused(value: str) -> None:
    prop = f'<prop id="wattage_per_state" value="{value}"/>'
    net = network(f'<zone id="z" routing="Full"><host id="a" speed="1Gf">{prop}</host></zone>')

    with pytest.raises(InputError, match="wattage_per_state"):
        power_of("p.xml", net.hosts["a"])


def test_a_platform_without_a_file_has_no_network() -> None:
    assert network_of(read_platform("4x1")).hosts == {}
