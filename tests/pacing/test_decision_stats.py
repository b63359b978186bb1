"""Statistics of a paced run: late decisions and over-allocations."""

from __future__ import annotations

import io
import json

import pytest

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.execution.nodes.allocations import NodeAllocations, OvercommittedAllocations
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.kernel.journal import Journal
from batkube.kernel.streams import Streams
from batkube.pacing.decision_stats import DecisionStats


class Cluster:
    """A store with decision statistics; times are in seconds."""

    def __init__(self) -> None:
        self._journal_file = io.BytesIO()
        world = World(Streams(0), Journal(self._journal_file))
        self.journal, self.store = world.journal, world.store
        self.stats = DecisionStats(world, NodeAllocations(world.store))

    def submit(self, name: str, at: float) -> None:
        self.store.create(POD, [Key(f"default/{name}")], [{"spec": {}, "status": {}}], _at(at))

    def bind(self, name: str, node: str, *, start: float, at: float) -> None:
        """Bind a pod at `at`, in the cycle that began at `start`."""
        key = Key(f"default/{name}")
        self.store.replace(POD, [key], [{"spec": {"nodeName": node}, "status": {}}], _at(at))
        self.stats.on_decision(_at(start), _at(at))

    def end(self, name: str, at: float) -> None:
        self.store.delete(POD, [Key(f"default/{name}")], _at(at))

    @property
    def late(self) -> dict[str, float]:
        """Lateness of decisions in seconds, by pod."""
        self.journal.flush()
        lines = [json.loads(line) for line in self._journal_file.getvalue().splitlines()]
        return {line["pod"]: line["by"] / 1e9 for line in lines if line["event"] == "late"}


def _at(s: float) -> Instant:
    return Instant(seconds(s))


def _for(s: float) -> Duration:
    return seconds(s)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_pods_are_counted_as_pending_running_and_deleted(cluster: Cluster) -> None:
    stats = cluster.stats
    cluster.submit("a", 0)
    cluster.submit("b", 0)
    assert (stats.waiting_pods, stats.running_pods) == (2, 0)
    cluster.bind("a", "n", start=0, at=0)
    assert (stats.waiting_pods, stats.running_pods, stats.decisions) == (1, 1, 1)
    cluster.end("a", 10)
    cluster.end("b", 10)
    assert (stats.waiting_pods, stats.running_pods, stats.decisions) == (0, 0, 1)


def test_a_decision_within_its_cycle_is_on_time(cluster: Cluster) -> None:
    cluster.submit("a", 0)
    cluster.bind("a", "n", start=0, at=0.02)

    assert cluster.late == {}


def test_a_decision_is_late_by_the_jumps_since_the_scheduler_began_it(cluster: Cluster) -> None:
    cluster.submit("a", 0)
    cluster.stats.on_time_jump(_for(2), was_busy=True)
    cluster.stats.on_time_jump(_for(4), was_busy=True)
    cluster.bind("a", "n", start=6.02, at=6.03)

    assert cluster.late == {"a": 6.0}
    columns = cluster.stats.columns()
    assert (columns["late_decisions"], columns["max_lateness"]) == (1, "6.000000")


def test_jumps_before_the_scheduler_was_last_idle_do_not_count(cluster: Cluster) -> None:
    cluster.submit("a", 0)
    cluster.stats.on_time_jump(_for(100), was_busy=True)
    cluster.stats.on_scheduler_idle()
    cluster.stats.on_time_jump(_for(3), was_busy=True)
    cluster.bind("a", "n", start=103, at=103)

    assert cluster.late == {"a": 3.0}


def test_a_decision_resets_the_lateness_of_the_next(cluster: Cluster) -> None:
    cluster.submit("a", 0)
    cluster.submit("b", 0)
    cluster.stats.on_time_jump(_for(3), was_busy=True)
    cluster.bind("a", "m", start=3, at=3)
    cluster.bind("b", "n", start=3, at=3)

    assert cluster.late == {"a": 3.0}


def test_lateness_is_at_most_the_age_of_the_pod(cluster: Cluster) -> None:
    cluster.stats.on_time_jump(_for(100), was_busy=True)
    cluster.submit("a", 99)
    cluster.submit("b", 100)
    cluster.bind("a", "m", start=100, at=100)
    cluster.stats.on_time_jump(_for(5), was_busy=False)
    cluster.bind("b", "n", start=105, at=105)

    assert cluster.late == {"a": 1.0}


def test_lateness_is_at_most_the_time_since_its_node_became_free(cluster: Cluster) -> None:
    cluster.submit("a", 0)
    cluster.submit("b", 0)
    cluster.bind("a", "n", start=0, at=0)
    cluster.stats.on_time_jump(_for(170), was_busy=True)
    cluster.end("a", 168)
    cluster.bind("b", "n", start=170, at=170)

    assert cluster.late == {"b": 2.0}


def test_nodes_without_admission_accept_every_pod_and_count_over_allocations() -> None:
    world = World(Streams(0))
    nodes = OvercommittedAllocations(world)
    names = [Key("one"), Key("two")]
    offer = {"metadata": {}, "spec": {}, "status": {"allocatable": {"cpu": "1"}}}
    world.store.create(NODE, names, [offer, offer], _at(0))

    for _ in range(3):
        assert nodes.allocate(["one"], (("cpu", 600),)) is None
    assert nodes.over_allocations == 2
    assert nodes.busy_node_count == 1
    assert [(row["severity"], row["count"]) for row in world.notes.rows()] == [("violation", 2)]

    for _ in range(3):
        nodes.release(["one"], (("cpu", 600),))
    assert nodes.busy_node_count == 0
    assert nodes.allocate(["one"], (("cpu", 1000),)) is None
    assert nodes.over_allocations == 2
