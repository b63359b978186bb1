"""Random probes of a container with a window of health, compared with a second-by-second model of probe workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulated_cluster import Cluster

from batkube.kernel.distributions import parse_distribution
from batkube.workloads.container_rules.rules import ContainerRule

LENGTH_S = 150
KINDS = ("startupProbe", "readinessProbe", "livenessProbe")


@dataclass
class Worker:
    """One probe, as in pkg/kubelet/prober/worker.go: the current streak of equal results, and the reported result."""

    probe: dict[str, int]
    result: bool | None = None
    last: bool = True
    run: int = 0

    def probed(self, is_well: bool) -> None:
        self.run = self.run + 1 if is_well == self.last else 1
        self.last = is_well
        if self.run >= self.probe["successThreshold" if is_well else "failureThreshold"]:
            self.result = is_well


def expected(probes: dict[str, dict[str, int]], after: int, until: int) -> Iterator[tuple[bool, int]]:
    """Yield, for the middle of every second, whether the container is ready, and its number of restarts.

    A container always starts a moment after the tick of a worker. Therefore, at a later tick, its age is slightly less
    than that of the pod. Readiness is checked a moment after the container has started.
    """
    started, up, restarts, retry, pause = 0, None, 0, None, 0
    workers = {kind: Worker(probe) for kind, probe in probes.items()}
    for now in range(LENGTH_S):
        if retry == now:
            started, retry, up = now, None, None
            restarts += 1
            workers = {kind: Worker(probe) for kind, probe in probes.items()}
        is_alive = retry is None
        for kind in ("livenessProbe", "startupProbe"):
            worker = workers.get(kind)
            if worker is None or not is_alive or now == 0 or now % worker.probe["periodSeconds"]:
                continue
            is_its_turn = (up is None) if kind == "startupProbe" else up is not None and up < now
            if now - started <= worker.probe["initialDelaySeconds"] or not is_its_turn:
                continue
            worker.probed(after <= now - started < until)
            if worker.result is False:
                is_alive = False
                retry, pause = now + pause, min(300, 2 * pause or 10)
                break
            if worker.result and kind == "startupProbe":
                up = now
        if retry == now:
            started, retry, up, is_alive = now, None, None, True
            restarts += 1
            workers = {kind: Worker(probe) for kind, probe in probes.items()}
        if is_alive and up is None and "startupProbe" not in probes:
            up = started
        readiness = workers.get("readinessProbe")
        if is_alive and up is not None and readiness is not None:
            is_tick = (now - up) % readiness.probe["periodSeconds"] == 0
            if is_tick and now - started >= readiness.probe["initialDelaySeconds"]:
                readiness.probed(after <= now - started < until)
        yield is_alive and up is not None and (readiness is None or bool(readiness.result)), restarts


def probe_of(kind: str) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries(
        {
            "initialDelaySeconds": st.integers(0, 15),
            "periodSeconds": st.integers(1, 12),
            "failureThreshold": st.integers(1, 4),
            "successThreshold": st.integers(1, 3) if kind == "readinessProbe" else st.just(1),
        }
    )


@settings(max_examples=150, deadline=None)
@given(
    probes=st.fixed_dictionaries({}, optional={kind: probe_of(kind) for kind in KINDS}),
    after=st.integers(0, 30),
    length=st.integers(1, 100),
)
def test_a_container_is_ready_and_restarted_as_with_kubelet_probe_workers(
    probes: dict[str, dict[str, int]], after: int, length: int
) -> None:
    rule = ContainerRule(
        "rules.yaml: [0]",
        image="app",
        healthy_after=parse_distribution(after),
        healthy_until=parse_distribution(after + length),
    )
    world = Cluster("1x4,16Gi", rules=[rule])
    pod: dict[str, Any] = world.pod("a")
    pod["spec"]["containers"][0] |= {kind: {"httpGet": {"port": 80}, **probe} for kind, probe in probes.items()}
    world.create("pods", pod)
    seen = []
    world.run(0.5)
    for _ in range(LENGTH_S):
        (status,) = world.get("pods", "default/a")["status"]["containerStatuses"]
        seen.append((status["ready"], status["restartCount"]))
        world.run(1)

    assert seen == list(expected(probes, after, after + length))
