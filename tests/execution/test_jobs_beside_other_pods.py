"""Pods of workload jobs and other pods run side by side on the same kubelets, on one virtual clock."""

from __future__ import annotations

import io
import json

import pytest

from batkube.cluster.decisions import DecisionLog, scheduler_rejection_status
from batkube.cluster.jobs.outcomes import Outcome
from batkube.cluster.mapping import NODE, POD, ResourceModel, node_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.components.cluster import KubeletOptions, pod_runtimes
from batkube.execution.jobs.creators import PodCreator
from batkube.execution.jobs.submission import Submission
from batkube.execution.jobs.workload_jobs import WorkloadJobs
from batkube.execution.kubelet.kubelets import Kubelets
from batkube.execution.latencies.delays import NO_LATENCIES, Delays, Latencies
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.instants import START, Instant, seconds
from batkube.kernel.journal import Journal
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.programs.startup.launch import make_server
from batkube.timing.loop import Loop, NextEventTime
from batkube.workloads.model import Delay, Job


class Mixed:
    """A job of two pods that takes 100 s, and methods that create and bind other pods as kubectl and a scheduler do."""

    def __init__(self, latencies: Latencies = NO_LATENCIES) -> None:
        self._journal_file = io.BytesIO()
        self.world = World(Streams(0), Journal(self._journal_file))
        self.loop, self.outcomes = Loop(self.world), list[Outcome]()
        self.client = make_server(self.world).api.client("test")
        machines = read_platform("2x2").machines
        job = Job(workload="w0", name="job", submit=START, size=2, profile=Delay(name="d", duration=seconds(100)))
        DecisionLog(self.world)
        creator = PodCreator(self.world, ResourceModel.REQUESTS, self.client)
        submission = Submission(self.world, [job], creator)
        jobs = WorkloadJobs(
            self.world,
            self.client,
            creator,
            resubmit=None,
            on_outcome=self.outcomes.append,
            on_pods=lambda record: None,
        )
        access, accounts = Access(lambda component: self.client, is_api=True), NodeAllocations(self.world.store)
        options = KubeletOptions(on_execution_lost=jobs.handle_node_loss)
        runtimes = pod_runtimes(self.world, access, options, accounts)
        Kubelets(self.world, accounts, self.client, runtimes, Delays(latencies, self.world.streams))
        nodes = [node_of(machine, ResourceModel.REQUESTS, START) for machine in machines]
        self.world.store.create(NODE, [key for key, _ in nodes], [node for _, node in nodes], START)
        submission.start()
        self.nodes = [key for key, _ in nodes]

    def make(self, name: str, annotations: dict[str, str]) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
        metadata = {"name": name, "namespace": "default", "annotations": annotations}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.client.create(POD, pod, self.world.clock.now)

    def bind(self, name: str, node: int) -> None:
        target = {"kind": "Node", "name": self.nodes[node]}
        metadata = {"name": name, "namespace": "default"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        self.client.create(POD, binding, self.world.clock.now, subresource="binding")

    def pod(self, name: str) -> KubeObject | None:
        return self.world.store.get(POD, Key(f"default/{name}"))

    def until(self, instant_s: float) -> None:
        self.loop.run_until(Instant(seconds(instant_s)))

    def journal(self) -> list[dict[str, object]]:
        self.world.journal.flush()
        return [json.loads(line) for line in self._journal_file.getvalue().splitlines()]


@pytest.fixture
def mixed() -> Mixed:
    mixed = Mixed()
    mixed.until(0)
    return mixed


def phase(pod: KubeObject | None) -> str:
    assert pod is not None
    return str(pod["status"]["phase"])


def test_a_job_starts_with_its_last_pod_while_other_pods_run_and_end(mixed: Mixed) -> None:
    mixed.make("visitor", {"batkube.io/duration": "30s"})
    mixed.bind("visitor", 0)
    mixed.bind("w0-job-0", 0)
    mixed.until(10)
    mixed.bind("w0-job-1", 1)
    mixed.until(109)
    assert (phase(mixed.pod("visitor")), phase(mixed.pod("w0-job-0")), mixed.outcomes) == ("Succeeded", "Running", [])

    mixed.loop.run(NextEventTime(mixed.world), lambda: bool(mixed.outcomes), lambda now: None)

    [outcome] = mixed.outcomes
    assert (outcome.started, outcome.finished) == (seconds(10), seconds(110))
    mixed.until(110)
    assert mixed.pod("w0-job-0") is None, "a job's pods go with it"
    assert phase(mixed.pod("visitor")) == "Succeeded", "other pods are left to whoever made them"


def test_nominations_evictions_and_rejections_are_one_journal_line_each(
    mixed: Mixed,
) -> None:
    mixed.make("visitor", {})
    mixed.bind("w0-job-0", 0)
    mixed.bind("visitor", 0)
    mixed.until(1)

    waiting, visitor = mixed.pod("w0-job-1"), mixed.pod("visitor")
    assert waiting is not None
    assert visitor is not None
    nominated = {**waiting, "status": {**waiting["status"], "nominatedNodeName": mixed.nodes[1]}}
    mixed.client.update(POD, nominated, mixed.world.clock.now, subresource="status")
    victim = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "make room"}
    conditions = [*visitor["status"]["conditions"], victim]
    marked = {**visitor, "status": {**visitor["status"], "conditions": conditions}}
    mixed.client.update(POD, marked, mixed.world.clock.now, subresource="status")
    mixed.client.delete(POD, Key("default/visitor"), mixed.world.clock.now)
    rejected = {**nominated, "status": {**nominated["status"], **scheduler_rejection_status("never")}}
    mixed.client.update(POD, rejected, mixed.world.clock.now, subresource="status")

    lines = [line for line in mixed.journal() if line["event"] in ("nominate", "evict", "reject")]
    assert lines == [
        {"t": 10**9, "event": "nominate", "job": "w0!job", "pods": "1", "node": mixed.nodes[1]},
        {"t": 10**9, "event": "evict", "pod": "default/visitor", "reason": "make room"},
        {"t": 10**9, "event": "reject", "job": "w0!job", "pods": "1", "reason": "never"},
    ]


def test_a_binding_is_one_journal_line_for_pods_of_jobs_and_for_others(mixed: Mixed) -> None:
    mixed.make("visitor", {})
    for name, node in (("visitor", 0), ("w0-job-0", 0), ("w0-job-1", 1)):
        mixed.bind(name, node)

    lines = [line for line in mixed.journal() if line["event"] == "bind"]

    assert lines == [
        {"t": 0, "event": "bind", "pod": "default/visitor", "node": mixed.nodes[0]},
        {"t": 0, "event": "bind", "job": "w0!job", "pods": "0", "machines": "0"},
        {"t": 0, "event": "bind", "job": "w0!job", "pods": "1", "machines": "1"},
    ]


def test_a_job_fails_if_the_kubelet_rejects_its_pod_on_a_full_node(mixed: Mixed) -> None:
    for number in range(110):
        mixed.make(f"filler-{number}", {"batkube.io/duration": "1h"})
        mixed.bind(f"filler-{number}", 0)
    mixed.bind("w0-job-0", 0)
    mixed.until(1)

    assert phase(mixed.pod("filler-109")) == "Running"
    [outcome] = mixed.outcomes
    assert (outcome.state, outcome.started) == ("COMPLETED_FAILED", None)
    [note] = mixed.world.notes.rows()
    assert (note["severity"], note["count"]) == ("violation", 1)


def test_deleting_one_pod_of_a_job_stops_all_of_them(mixed: Mixed) -> None:
    mixed.bind("w0-job-0", 0)
    mixed.bind("w0-job-1", 1)
    mixed.until(40)
    mixed.client.delete(POD, Key("default/w0-job-0"), mixed.world.clock.now)
    mixed.until(41)

    [outcome] = mixed.outcomes
    assert (outcome.state, outcome.finished) == ("COMPLETED_KILLED", seconds(40))
    assert (mixed.pod("w0-job-0"), mixed.pod("w0-job-1")) == (None, None)


def test_deleting_all_pods_of_a_job_at_one_instant_ends_it_once(mixed: Mixed) -> None:
    mixed.bind("w0-job-0", 0)
    mixed.bind("w0-job-1", 1)
    mixed.until(40)
    for rank in (0, 1):
        mixed.client.delete(POD, Key(f"default/w0-job-{rank}"), mixed.world.clock.now, grace_s=0)
    mixed.until(41)

    assert [outcome.state for outcome in mixed.outcomes] == ["COMPLETED_KILLED"]


def test_deleting_a_pod_while_its_end_is_reported_does_not_change_the_outcome() -> None:
    mixed = Mixed(Latencies(report=parse_distribution(5)))
    mixed.until(0)
    mixed.bind("w0-job-0", 0)
    mixed.bind("w0-job-1", 1)
    mixed.until(102)
    mixed.client.delete(POD, Key("default/w0-job-0"), mixed.world.clock.now)
    mixed.until(110)

    assert [(one.state, one.finished) for one in mixed.outcomes] == [("COMPLETED_SUCCESSFULLY", seconds(100))]
