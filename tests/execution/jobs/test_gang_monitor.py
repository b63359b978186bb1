"""Deadlocks of half-started jobs: the tests bind pods themselves, on a world without a scheduler."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from batkube.cluster.decisions import Binding, Eviction
from batkube.cluster.mapping import NODE, POD, ResourceModel, node_of
from batkube.cluster.object_meta import key_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.execution.jobs.creators import PodCreator
from batkube.execution.jobs.gang_monitor import ROLLBACK_TIME, GangMonitor
from batkube.execution.jobs.job_runtime import JobRuntime
from batkube.execution.jobs.pod_statuses import PhaseStatuses
from batkube.execution.jobs.submission import Submission
from batkube.execution.jobs.workload_jobs import WorkloadJobs
from batkube.execution.kubelet.kubelets import Kubelets
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import START, Instant, seconds
from batkube.kernel.journal import Journal
from batkube.kernel.quantities import CPU
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.timing.loop import Loop
from batkube.workloads.model import Delay, Job

LATER = Instant(START + ROLLBACK_TIME)


class Cluster:
    """Nodes of one cpu, and jobs with pods of one cpu each, given as name=size."""

    def __init__(
        self,
        nodes: int,
        sizes: dict[str, int],
        *,
        priority: int = 0,
        has_evictors: bool = False,
        may_grow: bool = False,
        others: Sequence[KubeObject] = (),
    ) -> None:
        self.file = io.BytesIO()
        self.world = World(Streams(0), Journal(self.file))
        self.loop, self.store = Loop(self.world), self.world.store
        self.store.create(POD, [key_of(pod) for pod in others], others, START)
        machines = read_platform(f"{nodes}x1").machines
        jobs = [
            Job(
                workload="w0",
                name=name,
                submit=START,
                size=size,
                profile=Delay(name="d", duration=seconds(100)),
                requests=((CPU, 1000),),
            )
            for name, size in sizes.items()
        ]
        self.client = client = StoreClient(self.store)
        creator = PodCreator(self.world, ResourceModel.REQUESTS, client)
        submission = Submission(self.world, jobs, creator)
        jobs_controller = WorkloadJobs(
            self.world,
            client,
            creator,
            resubmit=submission.resubmit,
            on_outcome=lambda outcome: None,
            on_pods=lambda record: None,
        )
        runtime = JobRuntime(self.world, PhaseStatuses(self.world, client))
        runtime.on_execution_lost = jobs_controller.handle_node_loss
        Kubelets(self.world, NodeAllocations(self.store), client, [runtime])
        objects = [node_of(machine, ResourceModel.REQUESTS, START) for machine in machines]
        self.store.create(NODE, [key for key, _ in objects], [node for _, node in objects], START)
        self.watch = GangMonitor(
            self.world,
            highest_priority=priority,
            has_objects=False,
            has_evictors=has_evictors,
            may_grow=may_grow,
            continues_after_deadlock=False,
        )
        submission.start()
        self.loop.run_until(START)

    def bind(self, **places: int) -> None:
        """Bind the pods `a_0=3` to the nodes of these numbers."""
        keys = [Key(f"default/w0-{name.replace('_', '-')}") for name in places]
        self.client.bind(Binding(keys, [f"node-{number}" for number in places.values()]), self.loop.now)
        self.loop.run_until(self.loop.now)

    def is_stuck(self) -> bool:
        return self.watch.is_deadlocked(self.loop.now)


def half_and_half(**options: bool | int) -> Cluster:
    """Return a cluster of two nodes with two jobs, each with one of its two pods bound."""
    cluster = Cluster(2, {"a": 2, "b": 2}, **options)  # type: ignore[arg-type]
    cluster.bind(a_0=0, b_0=1)
    return cluster


def test_without_evictors_a_deadlock_is_reported_at_once_with_jobs_nodes_and_start() -> None:
    cluster = half_and_half()

    assert cluster.is_stuck()
    assert str(cluster.watch.deadlock) == (
        "deadlock since 0 s: 2 half-started jobs can never get the nodes still missing: "
        "w0!a has 1 of its 2 pods on node-0; w0!b has 1 of its 2 pods on node-1"
    )
    assert list(cluster.watch.deadlocked_jobs) == ["w0!a", "w0!b"]
    cluster.world.journal.flush()
    lines = [json.loads(line) for line in cluster.file.getvalue().splitlines()]
    assert [line["nodes"] for line in lines if line["event"] == "deadlock"] == ["node-0", "node-1"]


def test_a_deadlock_is_reported_after_ten_minutes_if_programs_may_evict() -> None:
    cluster = half_and_half(has_evictors=True)

    assert not cluster.is_stuck()
    cluster.loop.run_until(Instant(LATER - 1))
    assert not cluster.is_stuck()
    cluster.loop.run_until(LATER)
    assert cluster.is_stuck()


def test_if_a_program_may_create_nodes_a_deadlock_is_noted_after_ten_minutes() -> None:
    cluster = half_and_half(may_grow=True)

    assert not cluster.is_stuck()
    assert not cluster.watch.deadlocked_jobs
    cluster.loop.run_until(LATER)
    assert not cluster.is_stuck()

    assert cluster.watch.deadlock is None
    assert list(cluster.watch.deadlocked_jobs) == ["w0!a", "w0!b"]
    (note,) = cluster.world.notes.rows()
    assert "unless a program adds nodes" in str(note["message"])


def test_a_job_that_gets_its_last_node_after_all_is_no_longer_in_a_deadlock() -> None:
    cluster = half_and_half(may_grow=True)
    assert not cluster.is_stuck()
    cluster.loop.run_until(LATER)
    assert not cluster.is_stuck()
    [new] = read_platform("3x1").machines[2:]
    key, node = node_of(new, ResourceModel.REQUESTS, cluster.loop.now)
    cluster.store.create(NODE, [key], [node], cluster.loop.now)

    cluster.bind(a_1=2)

    assert list(cluster.watch.deadlocked_jobs) == ["w0!b"]


def test_an_eviction_ends_a_suspected_deadlock() -> None:
    cluster = half_and_half(has_evictors=True)
    assert not cluster.is_stuck()

    keys = [Key("default/w0-a-0")]
    cluster.client.delete_all(POD, keys, cluster.loop.now, decision=Eviction(keys))
    cluster.loop.run_until(LATER)

    assert not cluster.is_stuck()


def test_a_deadlock_is_not_reported_while_nodes_may_be_added() -> None:
    cluster = half_and_half()
    cluster.world.agenda.book(Instant(seconds(50)), Rank.TIMELINE, lambda now: None)

    assert not cluster.is_stuck()
    cluster.loop.run_until(Instant(seconds(50)))
    assert cluster.is_stuck()


def test_a_deadlock_is_not_reported_while_a_preempting_job_may_arrive() -> None:
    cluster = half_and_half(priority=1)
    cluster.world.agenda.book(Instant(seconds(50)), Rank.SUBMIT, lambda now: None)

    assert not cluster.is_stuck()
    cluster.loop.run_until(LATER)
    assert cluster.is_stuck()


def test_a_running_job_causes_no_deadlock() -> None:
    cluster = Cluster(3, {"a": 2, "b": 2, "c": 1})

    cluster.bind(a_0=0, b_0=1, c=2)

    assert not cluster.is_stuck()


def test_a_pod_that_never_ends_can_cause_a_deadlock() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    web: KubeObject = {
        "metadata": {"name": "web", "namespace": "default", "uid": "1"},
        "spec": {"nodeName": "node-2", "restartPolicy": "Always", "containers": [container]},
        "status": {"phase": "Running"},
    }
    task = {**web, "spec": {**web["spec"], "restartPolicy": "Never"}}

    for pod, is_stuck in ((web, True), (task, False)):
        cluster = Cluster(3, {"a": 2, "b": 2}, others=[pod])
        cluster.bind(a_0=0, b_0=1)
        assert cluster.is_stuck() == is_stuck


def test_an_unschedulable_node_does_not_resolve_a_deadlock() -> None:
    cluster = Cluster(3, {"a": 2, "b": 2})
    cluster.bind(a_0=0, b_0=1)
    assert not cluster.is_stuck()

    [node] = cluster.store.objects(NODE, [Key("node-2")])
    cordoned = {**node, "spec": {**node["spec"], "unschedulable": True}}
    cluster.store.replace(NODE, [Key("node-2")], [cordoned], cluster.loop.now)

    assert cluster.is_stuck()


def test_the_time_in_which_pods_wait_for_the_others_is_counted() -> None:
    cluster = Cluster(4, {"a": 2, "b": 2})
    cluster.bind(a_0=0)
    cluster.loop.run_until(Instant(seconds(7)))

    cluster.bind(a_1=1, b_0=2, b_1=3)

    assert cluster.watch.member_waits == {"w0!a": seconds(7)}
    assert cluster.store.get(POD, Key("default/w0-a-1")) is not None
