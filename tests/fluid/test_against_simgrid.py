"""Our fluid model and SimGrid's L07 model have the same end times, with random platforms and tasks.

Enabled by BATKUBE_SLOW_TESTS=1; needs g++ and Debian's libsimgrid-dev. End times agree within 1e-6 (relative), except
where several tasks use one fat pipe at once: SimGrid charges it for the smallest increment of its tasks only, so it
offers the rest again and allocates more than the bandwidth. Our model gives each task the bandwidth, and no more.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests import opt_in
from tests.fluid.end_times import Arrival, compile_oracle, our_end_times, simgrid_end_times

PLATFORMS = 1000


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = compile_oracle(tmp_path_factory.mktemp("oracle"))
    if program is None:
        pytest.skip("needs g++ and libsimgrid-dev")
    return program


def random_cluster(rng: random.Random, name: str, size: int) -> str:
    """Return a cluster, at random with a backbone, limiters, loopbacks and duplex links."""
    attributes = {
        "id": name,
        "prefix": f"{name}-",
        "suffix": "",
        "radical": f"0-{size - 1}",
        "speed": f"{rng.randint(1, 40)}e8f",
        "core": str(rng.choice((1, 1, 2, 4))),
        "bw": f"{rng.randint(50, 200)}MBps",
        "lat": f"{rng.randint(0, 90)}us",
        "sharing_policy": rng.choice(("SPLITDUPLEX", "SHARED")),
    }
    if rng.random() < 0.6:
        attributes |= {"bb_bw": f"{rng.randint(100, 2000)}MBps", "bb_lat": f"{rng.randint(1, 500)}us"}
    if rng.random() < 0.3:
        attributes["limiter_link"] = f"{rng.randint(80, 300)}e6"
    if rng.random() < 0.3:
        attributes |= {"loopback_bw": "6GBps", "loopback_lat": "1us"}
    return "<cluster " + " ".join(f'{key}="{value}"' for key, value in attributes.items()) + "/>"


def random_clusters(rng: random.Random) -> tuple[str, list[str]]:
    """Return clusters that are connected by a link, and the names of their hosts."""
    sizes = [rng.randint(2, 6) for _ in range(rng.choice((1, 2, 3)))]
    lines = [random_cluster(rng, f"c{number}", size) for number, size in enumerate(sizes)]
    duplex = rng.random() < 0.5
    policy = 'sharing_policy="SPLITDUPLEX"' if duplex else ""
    lines.append(f'<link id="wan" bandwidth="{rng.randint(20, 400)}MBps" latency="{rng.randint(0, 3)}ms" {policy}/>')
    step = '<link_ctn id="wan" direction="UP"/>' if duplex else '<link_ctn id="wan"/>'
    for one in range(len(sizes)):
        for other in range(one):
            gateways = f'gw_src="c{one}-c{one}_router" gw_dst="c{other}-c{other}_router"'
            lines.append(f'<zoneRoute src="c{one}" dst="c{other}" {gateways}>{step}</zoneRoute>')
    hosts = [f"c{number}-{host}" for number, size in enumerate(sizes) for host in range(size)]
    return f'<zone id="all" routing="Full">{"".join(lines)}</zone>', hosts


def random_mesh(rng: random.Random) -> tuple[str, list[str]]:
    """Return hosts with routes of a few shared links, between each two or along a chain with shortest paths."""
    hosts = [f"h{number}" for number in range(rng.randint(2, 7))]
    speeds = [f'<host id="{host}" speed="{rng.randint(1, 40)}e8f" core="{rng.choice((1, 2))}"/>' for host in hosts]
    links = [
        f'<link id="l{number}" bandwidth="{rng.randint(20, 300)}MBps" latency="{rng.randint(0, 900)}us"/>'
        for number in range(rng.randint(1, 6))
    ]
    routes = []
    is_chain = rng.random() < 0.4
    for one, source in enumerate(hosts):
        for target in hosts[one + 1 : one + 2] if is_chain else hosts[one + 1 :]:
            some = rng.sample(range(len(links)), rng.randint(1, min(3, len(links))))
            steps = "".join(f'<link_ctn id="l{number}"/>' for number in some)
            routes.append(f'<route src="{source}" dst="{target}">{steps}</route>')
    routing = rng.choice(("Floyd", "Dijkstra")) if is_chain else "Full"
    return f'<zone id="all" routing="{routing}">{"".join(speeds + links + routes)}</zone>', hosts


def random_tasks(rng: random.Random, hosts: list[str]) -> list[Arrival]:
    tasks = []
    for number in range(rng.randint(1, 12)):
        size = rng.randint(1, min(5, len(hosts)))
        kind = rng.random()
        flops = [rng.choice((0.0, rng.uniform(1e8, 2e10))) if kind < 0.8 else 0.0 for _ in range(size)]
        pairs = range(size * size)
        sent = [0.0 if p // size == p % size or rng.random() < 0.4 else rng.uniform(1e6, 5e8) for p in pairs]
        start_s = rng.choice((0.0, round(rng.uniform(0, 30), 3)))
        tasks.append(Arrival(f"t{number}", start_s, rng.sample(hosts, size), flops, sent if kind > 0.3 else []))
    return tasks


@opt_in.slow("runs SimGrid a thousand times")
@pytest.mark.parametrize("block", range(10))
def test_end_times_are_those_of_simgrid(oracle: Path, tmp_path: Path, block: int) -> None:
    size = PLATFORMS // 10
    for seed in range(block * size, (block + 1) * size):
        rng = random.Random(seed)
        body, hosts = rng.choice((random_clusters, random_mesh))(rng)
        platform = tmp_path / f"{seed}.xml"
        platform.write_text(
            '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            f'<platform version="4.1">{body}</platform>\n'
        )
        tasks = random_tasks(rng, hosts)
        ours = our_end_times(platform, tasks)
        theirs = simgrid_end_times(oracle, platform, tasks)
        assert ours.keys() == theirs.keys(), seed
        assert ours == pytest.approx(theirs, rel=1e-6, abs=2e-9), seed


@opt_in.slow("runs SimGrid")
def test_simgrid_overcommits_a_fat_pipe_and_our_model_does_not(oracle: Path, tmp_path: Path) -> None:
    """Two tasks use a fat pipe of 100 MB/s; a slow link limits one of them to 10 MB/s."""
    platform = tmp_path / "fat.xml"
    platform.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>'
        '<link id="fat" bandwidth="100MBps" latency="0s" sharing_policy="FATPIPE"/>'
        '<link id="slow" bandwidth="10MBps" latency="0s"/>'
        '<route src="a" dst="a"><link_ctn id="fat"/></route>'
        '<route src="a" dst="b"><link_ctn id="fat"/><link_ctn id="slow"/></route></zone></platform>'
    )
    tasks = [
        Arrival("loop", 0.0, ["a"], [0.0], [1e9]),
        Arrival("far", 0.0, ["a", "b"], [0.0, 0.0], [0.0, 1e9, 0.0, 0.0]),
    ]

    ours, theirs = our_end_times(platform, tasks), simgrid_end_times(oracle, platform, tasks)

    assert ours == pytest.approx({"loop": 10.0, "far": 100.0})
    assert theirs["loop"] < 5
