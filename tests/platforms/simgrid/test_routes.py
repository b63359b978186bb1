"""Routes through the zones of SimGrid platforms; tests/fluid compares them with SimGrid's."""

from __future__ import annotations

import pytest
from tests.platforms.simgrid.networks import CLUSTERS, link_names, network

from batkube.kernel.errors import InputError


def test_a_route_in_a_cluster_leads_over_its_backbone() -> None:
    net = network(CLUSTERS)

    assert link_names(net, "a0", "a1") == [
        "a_link_0_limiter", "a_link_0_UP", "a_backbone", "a_link_1_DOWN", "a_link_1_limiter",
    ]  # fmt: skip
    assert net.route("a0", "a1").latency_s == pytest.approx(0.004)
    assert link_names(net, "a0", "a0") == ["a_link_0_loopback"]
    assert net.route("a0", "a0").links[0].is_fatpipe
    assert link_names(net, "b0", "b1") == ["b_link_0", "b_link_1"]


def test_a_route_between_zones_uses_their_gateways_in_both_directions() -> None:
    net = network(CLUSTERS)

    assert link_names(net, "a0", "b1") == ["a_link_0_limiter", "a_link_0_UP", "a_backbone", "wan_UP", "b_link_1"]
    assert link_names(net, "b1", "a0") == ["b_link_1", "wan_DOWN", "a_backbone", "a_link_0_DOWN", "a_link_0_limiter"]
    assert net.route("a0", "b1").latency_s == pytest.approx(0.008001)
    assert net.hosts["b0"].cores == 4
    assert net.route("a0", "b0").links[3].bandwidth_bps == 125e6


def test_the_latency_in_a_vivaldi_zone_is_the_distance_of_the_coordinates() -> None:
    hosts = '<host id="x" speed="1f" coordinates="0 0 1"/><host id="y" speed="1f" coordinates="30 40 2"/>'
    net = network(f'<zone id="z" routing="Vivaldi">{hosts}</zone>')

    assert net.route("x", "y") == ((), pytest.approx(0.053))


@pytest.mark.parametrize("routing", ["Floyd", "Dijkstra"])
def test_the_shortest_path_has_the_fewest_links(routing: str) -> None:
    hosts = "".join(f'<host id="h{n}" speed="1f"/>' for n in range(4))
    links = "".join(f'<link id="l{n}" bandwidth="1Bps" latency="1s"/>' for n in range(5))
    routes = "".join(f'<route src="h{n}" dst="h{n + 1}"><link_ctn id="l{n}"/></route>' for n in range(3))
    routes += '<route src="h0" dst="h3" symmetrical="NO"><link_ctn id="l3"/><link_ctn id="l4"/></route>'
    net = network(f'<zone id="z" routing="{routing}">{hosts}{links}{routes}</zone>')

    assert link_names(net, "h0", "h3") == ["l3", "l4"]
    assert link_names(net, "h3", "h0") == ["l2", "l1", "l0"]
    assert link_names(net, "h1", "h1") == ["__loopback__"]


@pytest.mark.parametrize("routing", ["Full", "Floyd", "Dijkstra"])
def test_a_route_from_a_host_to_itself_replaces_the_default_loopback(routing: str) -> None:
    route = '<link id="l" bandwidth="1Bps" latency="1s"/><route src="h" dst="h"><link_ctn id="l"/></route>'
    net = network(f'<zone id="z" routing="{routing}"><host id="h" speed="1f"/>{route}</zone>')

    assert link_names(net, "h", "h") == ["l"]


def test_a_host_in_a_zone_that_contains_zones_has_no_default_loopback() -> None:
    zone = '<zone id="inner" routing="Full"><host id="g" speed="1f"/></zone>'
    net = network(f'<zone id="z" routing="Floyd"><host id="h" speed="1f"/>{zone}</zone>')

    with pytest.raises(InputError, match="no route from 'h' to 'h'"):
        net.route("h", "h")
