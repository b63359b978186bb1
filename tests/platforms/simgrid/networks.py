"""Networks of small platform files, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

from batkube.platforms.network import Network
from batkube.platforms.simgrid.network import parse_network

#: Two clusters that are connected by a duplex link.
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
    """Return the network of a platform file with `body`."""
    return parse_network(Path("p.xml"), f'<?xml version="1.0"?><platform version="4.1">{body}</platform>'.encode())


def link_names(net: Network, source: str, target: str) -> list[str]:
    """Return the names of the links of a route."""
    return [link.name for link in net.route(source, target).links]
