"""Networks of SimGrid platform files: links and zones."""

from __future__ import annotations

import pytest
from tests.platforms.simgrid.networks import link_names, network

from batkube.kernel.errors import InputError


def test_cabinets_and_host_links_are_connected_to_the_backbone_of_their_zone() -> None:
    net = network(
        '<zone id="z" routing="Cluster"><link id="wire" bandwidth="2MBps" latency="1ms"/>'
        '<host id="lone" speed="1f"/><host_link id="lone" up="wire" down="wire"/>'
        '<cabinet id="c" prefix="n" suffix="" radical="0-1" speed="1f" bw="1MBps" lat="1ms"/>'
        '<backbone id="bb" bandwidth="9MBps" latency="2ms"/></zone>'
    )

    assert link_names(net, "lone", "n1") == ["wire", "bb", "link_n1_DOWN"]


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
            "duplex link without a direction",
        ),
    ],
)
def test_invalid_and_unsupported_elements_are_rejected_with_their_line(body: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        network(body)

    assert error.value.at is not None
    assert error.value.at.startswith("line 1")
