"""One adaptor: jobs of a workload and pods that anybody makes, in one queue, on nodes that come and go."""

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
from batkube.execution.containers.runtime import ContainerRuntime
from batkube.execution.jobs.creators import PodCreator
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
from batkube.policies.registry.catalogue import load_policy
from batkube.policies.runtime.policy_scheduler import PolicyChoice, PolicyScheduler
from batkube.programs.startup.launch import make_server
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


class Yard:
    """A policy's cluster with everything real: API, kubelets, jobs; and hands that make pods and change nodes."""

    def __init__(
        self, policy: str | Policy, jobs: list[Job], model: ResourceModel = REQUESTS, platform: str = "2x2"
    ) -> None:
        self.world, self.model, self.outcomes = World(Streams(0)), model, dict[str, Outcome]()
        self.store, self.loop = self.world.store, Loop(self.world)
        self.client = make_server(self.world).api.client("test")
        self.machines = read_platform(platform).machines
        maker = PodCreator(self.world, model)
        submission = Submission(self.world, sorted(jobs, key=lambda job: job.submit), maker)
        DecisionLog(self.world)
        controller = WorkloadJobs(
            self.world,
            maker,
            resubmit=submission.resubmit,
            on_outcome=lambda outcome: self.outcomes.update({outcome.job.name: outcome}),
            on_pods=lambda record: None,
        )
        events = EventRecorder(self.world, self.client, "test")
        containers, accounts = ContainerRuntime(self.world, self.client, events), NodeAllocations(self.store)
        Kubelets(self.world, accounts, controller, containers)
        policy = load_policy(policy, {}) if isinstance(policy, str) else policy
        choice = PolicyChoice(policy, random.Random(0), model, true_length=lambda job: seconds(1))
        self.scheduler = PolicyScheduler(self.world, choice, self.client, events)
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
        """Take a node away, and its pods with it, as the controllers for lost nodes do."""
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
        """Return the cpu that pods hold of each node, as the store tells it."""
        used: dict[str, int] = {}
        for pod in self.store.all(POD).values():
            if node_of_pod(pod) and not is_finished(pod):
                used[node_of_pod(pod)] = used.get(node_of_pod(pod), 0) + demand_of(pod).get(CPU, 0)
        return used


def free_by_store(yard: Yard) -> dict[str, int]:
    """Return what is free of each node by the pods in the store: millicores, or 1 for a machine without a pod."""
    used, whole = yard.used_cpu(), {"node-0": 2000, "node-1": 2000, "node-2": 2000}
    nodes = yard.store.all(NODE)
    if yard.model is REQUESTS:
        return {str(name): whole[name] - used.get(name, 0) for name in nodes}
    held = {node_of_pod(pod) for pod in yard.store.all(POD).values() if not is_finished(pod)}
    return {str(name): 1 for name, node in nodes.items() if not node["spec"] and name not in held}


def free_by_view(yard: Yard) -> dict[str, int]:
    """Return what the policy sees as free, in the same terms."""
    room, names = yard.scheduler.view.free, yard.scheduler._columns.names
    if isinstance(room, MachineRoom):
        return {str(names[number]): 1 for number in members(room.mask)}
    assert isinstance(room, NodeRoom)
    return {str(name): int(cpu) for name, cpu in zip(names, room.free[room.nodes.row_of[CPU]], strict=True) if name}


happenings = st.lists(
    st.tuples(
        st.sampled_from(["pod", "pod", "delete", "remove", "add", "add", "cordon", "taint", "open", "open"]),
        st.integers(0, 2),
        st.integers(1, 30),
    ),
    max_size=14,
)
courses_of_jobs = st.lists(
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


def happen(yard: Yard, what: str, number: int, lasts: int, count: int) -> None:
    match what:
        case "pod":
            yard.make_pod(f"pod-{count}", lasts=lasts, cpu=str(number))
        case "delete":
            pods = list(yard.store.all(POD))
            if pods:
                yard.delete_pod(pods[lasts % len(pods)])
        case "remove":
            yard.remove_node(number)
        case "add":
            yard.add_node(number)
        case "cordon":
            yard.change_node(number, {"unschedulable": True})
        case "taint":
            yard.change_node(number, TAINT)
        case "open":
            yard.change_node(number, {})


@pytest.mark.parametrize("model", [MACHINES, REQUESTS])
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "priority", "best-fit"])
@settings(max_examples=12, deadline=None)
@given(jobs=courses_of_jobs, happenings=happenings)
def test_what_is_free_is_what_pods_and_nodes_leave_whatever_happens(
    policy: str,
    model: ResourceModel,
    jobs: list[tuple[int, int, int, int, int]],
    happenings: list[tuple[str, int, int]],
) -> None:
    made = [
        a_job(str(number), at=at, size=size, lasts=lasts, cpu=cpu, priority=priority)
        for number, (at, size, lasts, cpu, priority) in enumerate(jobs)
    ]
    yard = Yard(policy, made, model, platform="3x2")

    for count, (what, number, lasts) in enumerate(happenings):
        yard.until(6 * count + 1)
        happen(yard, what, number, lasts, count)
        yard.until(6 * count + 3)
        if not yard.scheduler._cluster_capacity.is_stale:
            assert free_by_view(yard) == free_by_store(yard)
    for number in range(3):
        yard.add_node(number)
        yard.change_node(number, {})
    yard.make_pod("last", cpu="0", lasts=1)
    yard.until(2000)

    assert len(yard.outcomes) == len(made)
    assert all(is_finished(pod) for pod in yard.store.all(POD).values())
    assert (list(yard.scheduler.view.queue), yard.scheduler.view.running) == ([], [])
    assert yard.scheduler.view.tracked == {}
    whole = 1 if model is MACHINES else 2000
    assert free_by_view(yard) == free_by_store(yard) == {f"node-{number}": whole for number in range(3)}


@pytest.mark.parametrize("model", [MACHINES, REQUESTS])
def test_jobs_and_pods_wait_in_one_queue(model: ResourceModel) -> None:
    yard = Yard("fcfs", [a_job("first", size=2, cpu=2, lasts=10), a_job("second", at=1, size=2, cpu=2)], model)
    yard.until(2)
    yard.make_pod("third")
    yard.until(15)

    assert yard.outcomes["first"].started == START
    assert yard.node_of("third") == "", "it came after the second job, which still holds both machines"

    yard.until(21)

    assert yard.outcomes["second"].started == Instant(seconds(10))
    assert yard.node_of("third") == "node-0"


@pytest.mark.parametrize("model", [MACHINES, REQUESTS])
@pytest.mark.parametrize("spec", [{"unschedulable": True}, TAINT])
def test_a_machine_that_is_closed_gets_no_job_until_it_is_open_again(model: ResourceModel, spec: KubeObject) -> None:
    yard = Yard("easy", [a_job("wide", at=5, size=2, cpu=2, lasts=5)], model)
    yard.change_node(0, spec)
    yard.until(20)
    assert yard.outcomes == {}

    yard.change_node(0, {})
    yard.until(40)

    assert yard.outcomes["wide"].started == Instant(seconds(20))


@pytest.mark.parametrize("policy", ["easy", "conservative", "priority"])
def test_a_job_runs_on_where_its_machine_was_cordoned_and_others_plan_around_it(policy: str) -> None:
    jobs = [a_job("long", lasts=50), a_job("next", at=5, size=2, lasts=5), a_job("small", at=6, lasts=5)]
    yard = Yard(policy, jobs, MACHINES)
    yard.until(1)
    yard.change_node(0, {"unschedulable": True})
    yard.until(30)
    yard.change_node(0, {})
    yard.until(100)

    assert yard.outcomes["long"].finished == Instant(seconds(50))
    assert yard.outcomes["next"].started == Instant(seconds(50))


def test_a_running_job_whose_pods_others_delete_is_queued_again_and_its_machines_are_free() -> None:
    yard = Yard("fcfs", [a_job("wide", size=2, lasts=10)], MACHINES)
    yard.until(4)
    yard.delete_pod("default/w-wide-1")
    yard.until(30)

    outcome = yard.outcomes["wide"]
    assert (outcome.started, outcome.past.evictions) == (Instant(seconds(4)), 1)


def test_a_pod_that_is_deleted_while_it_waits_leaves_the_queue() -> None:
    yard = Yard("fcfs", [])
    yard.make_pod("big", cpu="5")
    yard.make_pod("small")
    yard.until(1)
    assert yard.node_of("small") == ""

    yard.delete_pod("default/big")
    yard.until(2)

    assert yard.node_of("small") == "node-0"


def test_what_pods_hold_that_others_have_bound_is_not_offered() -> None:
    yard = Yard("first-fit", [])
    yard.make_pod("bound", cpu="2", lasts=10, nodeName="node-0")
    yard.make_pod("other", cpu="1", lasts=30)
    yard.until(1)
    assert yard.node_of("other") == "node-1"

    yard.until(11)
    yard.make_pod("late", cpu="2")
    yard.until(12)

    assert yard.node_of("late") == "node-0"


def test_pods_of_equal_requests_and_other_rules_do_not_speak_for_each_other() -> None:
    yard = Yard("first-fit", [])
    yard.make_pod("nowhere", nodeSelector={"no": "such"})
    yard.make_pod("anywhere")
    yard.until(1)

    assert (yard.node_of("nowhere"), yard.node_of("anywhere")) == ("", "node-0")


class Refusing(Policy):
    """Rejects everything."""

    def decide(self, view: View) -> Iterator[Decision]:
        for job in view.queue:
            yield Reject(job, "never")


def test_a_policy_rejects_jobs_and_pods_alike() -> None:
    yard = Yard(Refusing(), [a_job("job")])
    yard.make_pod("pod")
    yard.until(1)

    assert yard.outcomes["job"].state.value == "REJECTED"
    assert yard.pod("pod")["status"] | {"conditions": []} == yard.pod("pod")["status"] | {
        "phase": "Failed",
        "reason": "RejectedByScheduler",
        "message": "never",
        "conditions": [],
    }
