"""A policy schedules workload jobs and other pods from one queue, on nodes that are added and removed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.cluster.decisions import DecisionLog
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.jobs.outcomes import Outcome
from batkube.cluster.mapping import NODE, POD, ResourceModel, node_of
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.pods.resources import demand_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.components.cluster import KubeletOptions, pod_runtimes
from batkube.execution.jobs.submission import Submission
from batkube.execution.jobs.workload_jobs import WorkloadJobs
from batkube.execution.kubelet.kubelets import Kubelets
from batkube.execution.nodes.allocations import NodeAllocations
from batkube.kernel.instants import START, Instant, seconds
from batkube.kernel.intervals import members
from batkube.kernel.quantities import CPU
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.policies.interface import Decision, Policy, Reject, View
from batkube.policies.machine_room import MachineRoom
from batkube.policies.node_room import NodeRoom
from batkube.policies.pod_scheduling.framework import SchedulingFramework
from batkube.policies.registry.catalogue import load_policy
from batkube.policies.runtime.policy_scheduler import PolicyChoice, PolicyScheduler
from batkube.programs.startup.launch import make_server
from batkube.simulation.preparation.job_forms import job_creator_of
from batkube.timing.loop import Loop
from batkube.workloads.model import Delay, Job

MACHINES, REQUESTS = ResourceModel.MACHINES, ResourceModel.REQUESTS
TAINT = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


def a_job(name: str, *, at: int = 0, size: int = 1, lasts: int = 10, cpu: int = 0, priority: int = 0) -> Job:
    return Job(
        workload="w",
        name=name,
        submit=Instant(seconds(at)),
        size=size,
        profile=Delay(name=f"d{lasts}", duration=seconds(lasts)),
        walltime=seconds(lasts + 1),
        requests=((CPU, cpu * 1000),) if cpu else (),
        priority=priority,
    )


class PolicyCluster:
    """A cluster with a policy, the real API server, kubelets and jobs, and methods to change pods and nodes."""

    def __init__(
        self, policy: str | Policy, jobs: list[Job], model: ResourceModel = REQUESTS, platform: str = "2x2"
    ) -> None:
        self.world, self.model, self.outcomes = World(Streams(0)), model, dict[str, Outcome]()
        self.store, self.loop = self.world.store, Loop(self.world)
        self.client = make_server(self.world).api.client("test")
        self.machines = read_platform(platform).machines
        creator = job_creator_of(self.world, model, self.client, {})
        submission = Submission(self.world, sorted(jobs, key=lambda job: job.submit), creator)
        DecisionLog(self.world)
        controller = WorkloadJobs(
            self.world,
            self.client,
            creator,
            resubmit=submission.resubmit,
            on_outcome=lambda outcome: self.outcomes.update({outcome.job.name: outcome}),
            on_pods=lambda record: None,
        )
        events = EventRecorder(self.world, self.client, "test")
        access, accounts = Access(lambda component: self.client, is_api=True), NodeAllocations(self.world.store)
        options = KubeletOptions(on_execution_lost=controller.handle_node_loss)
        runtimes = pod_runtimes(self.world, access, options, accounts)
        Kubelets(self.world, accounts, self.client, runtimes)
        policy = load_policy(policy, {}) if isinstance(policy, str) else policy
        choice = PolicyChoice(policy, random.Random(0), model, true_run_time=lambda job: seconds(1))
        self.scheduler = PolicyScheduler(
            self.world, choice, self.client, SchedulingFramework(self.world, self.client, events)
        )
        for number in range(len(self.machines)):
            self.add_node(number)
        submission.start()

    def until(self, instant_s: float) -> None:
        self.loop.run_until(Instant(seconds(instant_s)))

    @property
    def now(self) -> Instant:
        return self.world.clock.now

    def add_node(self, number: int) -> None:
        key, node = node_of(self.machines[number], self.model, self.now)
        if self.store.get(NODE, key) is None:
            self.store.create(NODE, [key], [node], self.now)

    def change_node(self, number: int, spec: KubeObject) -> None:
        key = Key(f"node-{number}")
        node = self.store.get(NODE, key)
        if node is not None:
            self.store.replace(NODE, [key], [{**node, "spec": spec}], self.now)

    def remove_node(self, number: int) -> None:
        """Delete a node and its pods, as the node controllers do."""
        key = Key(f"node-{number}")
        self.store.delete(NODE, self.store.existing(NODE, [key]), self.now)
        for pod_key, pod in self.store.all(POD).items():
            if node_of_pod(pod) == key:
                self.delete_pod(pod_key)

    def delete_pod(self, key: str) -> None:
        self.client.delete(POD, Key(key), self.now, grace_s=0)

    def make_pod(self, name: str, *, lasts: int = 10, cpu: str = "1", **spec: object) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        annotations = {"batkube.io/duration": f"{lasts}s", "batkube.io/walltime": f"{lasts + 1}s"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {"containers": [container], "restartPolicy": "Never", **spec},
        }
        self.client.create(POD, pod, self.now)

    def pod(self, name: str) -> KubeObject:
        [pod] = self.store.objects(POD, [Key(f"default/{name}")])
        return pod

    def node_of(self, name: str) -> str:
        return node_of_pod(self.pod(name))

    def used_cpu(self) -> dict[str, int]:
        """Return the cpu that pods use on each node, from the store."""
        used: dict[str, int] = {}
        for pod in self.store.all(POD).values():
            if node_of_pod(pod) and not is_finished(pod):
                used[node_of_pod(pod)] = used.get(node_of_pod(pod), 0) + demand_of(pod).get(CPU, 0)
        return used


def free_by_store(cluster: PolicyCluster) -> dict[str, int]:
    """Return the free capacity of each node from the store: millicores, or 1 for a machine without a pod."""
    used, capacity = cluster.used_cpu(), {"node-0": 2000, "node-1": 2000, "node-2": 2000}
    nodes = cluster.store.all(NODE)
    if cluster.model is REQUESTS:
        return {str(name): capacity[name] - used.get(name, 0) for name in nodes}
    occupied = {node_of_pod(pod) for pod in cluster.store.all(POD).values() if not is_finished(pod)}
    return {str(name): 1 for name, node in nodes.items() if not node["spec"] and name not in occupied}


def free_by_view(cluster: PolicyCluster) -> dict[str, int]:
    """Return the free capacity of each node from the policy's view, in the same unit."""
    room, names = cluster.scheduler.view.free, cluster.scheduler._columns.names
    if isinstance(room, MachineRoom):
        return {str(names[number]): 1 for number in members(room.mask)}
    assert isinstance(room, NodeRoom)
    return {str(name): int(cpu) for name, cpu in zip(names, room.free[room.nodes.row_of[CPU]], strict=True) if name}


node_and_pod_events = st.lists(
    st.tuples(
        st.sampled_from(["pod", "pod", "delete", "remove", "add", "add", "cordon", "taint", "reopen", "reopen"]),
        st.integers(0, 2),
        st.integers(1, 30),
    ),
    max_size=14,
)
job_parameters = st.lists(
    st.builds(
        lambda at, size, lasts, cpu, priority: (at, size, lasts, cpu, priority),
        st.integers(0, 60),
        st.integers(1, 3),
        st.integers(1, 30),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=8,
)


def apply_event(cluster: PolicyCluster, event: str, number: int, lasts: int, count: int) -> None:
    match event:
        case "pod":
            cluster.make_pod(f"pod-{count}", lasts=lasts, cpu=str(number))
        case "delete":
            pods = list(cluster.store.all(POD))
            if pods:
                cluster.delete_pod(pods[lasts % len(pods)])
        case "remove":
            cluster.remove_node(number)
        case "add":
            cluster.add_node(number)
        case "cordon":
            cluster.change_node(number, {"unschedulable": True})
        case "taint":
            cluster.change_node(number, TAINT)
        case "reopen":
            cluster.change_node(number, {})


@pytest.mark.parametrize("model", [MACHINES, REQUESTS])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "priority", "best-fit"])
@settings(max_examples=12, deadline=None)
@given(jobs=job_parameters, events=node_and_pod_events)
def test_free_capacity_of_the_view_equals_that_of_the_store_after_any_events(
    policy: str,
    model: ResourceModel,
    jobs: list[tuple[int, int, int, int, int]],
    events: list[tuple[str, int, int]],
) -> None:
    workload = [
        a_job(str(number), at=at, size=size, lasts=lasts, cpu=cpu, priority=priority)
        for number, (at, size, lasts, cpu, priority) in enumerate(jobs)
    ]
    cluster = PolicyCluster(policy, workload, model, platform="3x2")

    for count, (event, number, lasts) in enumerate(events):
        cluster.until(6 * count + 1)
        apply_event(cluster, event, number, lasts, count)
        cluster.until(6 * count + 3)
        if not cluster.scheduler._cluster_capacity.is_stale:
            assert free_by_view(cluster) == free_by_store(cluster)
    for number in range(3):
        cluster.add_node(number)
        cluster.change_node(number, {})
    cluster.make_pod("last", cpu="0", lasts=1)
    cluster.until(2000)

    assert len(cluster.outcomes) == len(workload)
    assert all(is_finished(pod) for pod in cluster.store.all(POD).values())
    assert (list(cluster.scheduler.view.queue), cluster.scheduler.view.running) == ([], [])
    assert cluster.scheduler.view.tracked == {}
    capacity = 1 if model is MACHINES else 2000
    assert free_by_view(cluster) == free_by_store(cluster) == {f"node-{number}": capacity for number in range(3)}


@pytest.mark.parametrize("model", [MACHINES, REQUESTS])
def test_jobs_and_pods_wait_in_one_queue(model: ResourceModel) -> None:
    cluster = PolicyCluster(
        "fcfs", [a_job("first", size=2, cpu=2, lasts=10), a_job("second", at=1, size=2, cpu=2)], model
    )
    cluster.until(2)
    cluster.make_pod("third")
    cluster.until(15)

    assert cluster.outcomes["first"].started == START
    assert cluster.node_of("third") == "", "it came after the second job, which still holds both machines"

    cluster.until(21)

    assert cluster.outcomes["second"].started == Instant(seconds(10))
    assert cluster.node_of("third") == "node-0"


@pytest.mark.parametrize("model", [MACHINES, REQUESTS])
@pytest.mark.parametrize("spec", [{"unschedulable": True}, TAINT])
def test_an_unschedulable_machine_gets_no_job_until_it_is_schedulable(model: ResourceModel, spec: KubeObject) -> None:
    cluster = PolicyCluster("easy", [a_job("wide", at=5, size=2, cpu=2, lasts=5)], model)
    cluster.change_node(0, spec)
    cluster.until(20)
    assert cluster.outcomes == {}

    cluster.change_node(0, {})
    cluster.until(40)

    assert cluster.outcomes["wide"].started == Instant(seconds(20))


@pytest.mark.parametrize("policy", ["easy", "conservative", "priority"])
def test_a_job_continues_on_a_cordoned_machine_and_plans_take_it_into_account(policy: str) -> None:
    jobs = [a_job("long", lasts=50), a_job("next", at=5, size=2, lasts=5), a_job("small", at=6, lasts=5)]
    cluster = PolicyCluster(policy, jobs, MACHINES)
    cluster.until(1)
    cluster.change_node(0, {"unschedulable": True})
    cluster.until(30)
    cluster.change_node(0, {})
    cluster.until(100)

    assert cluster.outcomes["long"].finished == Instant(seconds(50))
    assert cluster.outcomes["next"].started == Instant(seconds(50))


def test_a_running_job_whose_pod_is_deleted_is_resubmitted_and_its_machines_are_released() -> None:
    cluster = PolicyCluster("fcfs", [a_job("wide", size=2, lasts=10)], MACHINES)
    cluster.until(4)
    cluster.delete_pod("default/w-wide-1")
    cluster.until(30)

    outcome = cluster.outcomes["wide"]
    assert (outcome.started, outcome.past.evictions) == (Instant(seconds(4)), 1)


def test_a_pod_that_is_deleted_while_it_waits_leaves_the_queue() -> None:
    cluster = PolicyCluster("fcfs", [])
    cluster.make_pod("big", cpu="5")
    cluster.make_pod("small")
    cluster.until(1)
    assert cluster.node_of("small") == ""

    cluster.delete_pod("default/big")
    cluster.until(2)

    assert cluster.node_of("small") == "node-0"


def test_resources_of_foreign_pods_are_not_offered() -> None:
    cluster = PolicyCluster("first-fit", [])
    cluster.make_pod("bound", cpu="2", lasts=10, nodeName="node-0")
    cluster.make_pod("other", cpu="1", lasts=30)
    cluster.until(1)
    assert cluster.node_of("other") == "node-1"

    cluster.until(11)
    cluster.make_pod("late", cpu="2")
    cluster.until(12)

    assert cluster.node_of("late") == "node-0"


def test_pods_with_equal_requests_and_different_constraints_are_tried_separately() -> None:
    cluster = PolicyCluster("first-fit", [])
    cluster.make_pod("nowhere", nodeSelector={"no": "such"})
    cluster.make_pod("anywhere")
    cluster.until(1)

    assert (cluster.node_of("nowhere"), cluster.node_of("anywhere")) == ("", "node-0")


class Refusing(Policy):
    """Rejects everything."""

    def decide(self, view: View) -> Iterator[Decision]:
        for job in view.queue:
            yield Reject(job, "never")


def test_a_policy_rejects_jobs_and_pods_alike() -> None:
    cluster = PolicyCluster(Refusing(), [a_job("job")])
    cluster.make_pod("pod")
    cluster.until(1)

    assert cluster.outcomes["job"].state.value == "REJECTED"
    assert cluster.pod("pod")["status"] | {"conditions": []} == cluster.pod("pod")["status"] | {
        "phase": "Failed",
        "reason": "RejectedByScheduler",
        "message": "never",
        "conditions": [],
    }
