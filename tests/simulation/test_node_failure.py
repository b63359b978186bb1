"""A node fails and returns: instants of all reactions with Kubernetes' defaults, under our controllers and real ones.

A kubelet renews its lease every 10 s. The node monitor checks every 5 s, from 0.1 s after its start, and marks a node
as unknown after more than 50 s without renewal. Nodes are tainted with NoExecute at the next multiple of 0.1 s, and
pods tolerate that taint for 300 s.

The instants below are those of kube-controller-manager 1.34.4 on the virtual clock, where reactions take no time. Our
controllers react after a millisecond, so the two may be a few milliseconds apart.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from batkube.cluster.object_meta import condition_of
from batkube.cluster.pods.accessors import is_ready
from batkube.cluster.store import DELETED, Batch, KubeObject
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Instant
from batkube.kernel.journal import Journal
from batkube.scenarios.keys import make_scenario
from batkube.simulation.assembly import Simulation, assemble
from batkube.simulation.preparation.inputs import read_inputs
from batkube.simulation.run import execute

#: With our controllers, and with the real ones beside kube-scheduler.
OURS, REAL = "ours", "kube-controller-manager@1.34.4"
both = pytest.mark.parametrize("controllers", [OURS, REAL])
#: Three reactions of ours, one after the other.
REACTIONS = 0.0031

_CONTAINERS = "containers: [{name: c, image: i}]"
OBJECTS = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{{_CONTAINERS}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: work}}
spec:
  template:
    metadata: {{annotations: {{batkube.io/duration: 1h}}}}
    spec: {{restartPolicy: Never, {_CONTAINERS}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  serviceName: db
  replicas: 1
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{{_CONTAINERS}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: bare}}
spec: {{{_CONTAINERS}}}
"""


class Sight(NamedTuple):
    """The state of a pod at an instant."""

    at: float
    node: str
    phase: str
    is_terminating: bool
    is_gone: bool
    is_ready: bool
    restarts: int


class Story:
    """A run that records every change of nodes and pods."""

    def __init__(
        self, folder: Path, controllers: str, events: str, platform: str = "2x4,16Gi", until: str = "1500"
    ) -> None:
        (folder / "objects.yaml").write_text(OBJECTS, encoding="utf-8")
        (folder / "events.yaml").write_text(events, encoding="utf-8")
        values = {
            "workload": [str(folder / "objects.yaml")],
            "platform": platform,
            "events": str(folder / "events.yaml"),
            "until": until,
            "controllers": controllers,
            "scheduler": "policy:fcfs" if controllers == OURS else "kube-scheduler@1.34.4",
        }
        inputs = read_inputs(make_scenario(values, "test"))
        files = io.StringIO(), io.StringIO()
        self.journal = io.BytesIO()
        self.simulation: Simulation = assemble(inputs, Journal(self.journal), Journal(), *files, folder / "scheduler")
        self.readiness: dict[str, list[tuple[float, str]]] = {}
        self.taints: dict[str, list[tuple[float, set[str]]]] = {}
        self.pods: dict[str, list[Sight]] = {}
        self.simulation.world.store.subscribe("nodes", self._hear_nodes)
        self.simulation.world.store.subscribe("pods", self._hear_pods)
        try:
            self.simulation.loop.run(self.simulation.programs, self.simulation.completion.is_done, lambda now: None)
        finally:
            self.simulation.programs.stop()

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        for node in batch.objects:
            name, ready = node["metadata"]["name"], condition_of(node, "Ready")
            status = "" if ready is None else ready["status"]
            words = {f"{taint['key'].rpartition('/')[2]}:{taint['effect']}" for taint in node["spec"].get("taints", [])}
            _note(self.readiness.setdefault(name, []), now / 1e9, status)
            _note(self.taints.setdefault(name, []), now / 1e9, words)

    def _hear_pods(self, batch: Batch, now: Instant) -> None:
        for pod in batch.objects:
            self.pods.setdefault(pod["metadata"]["uid"], []).append(_sight(pod, now, batch.type is DELETED))
            self._names = getattr(self, "_names", {}) | {pod["metadata"]["uid"]: pod["metadata"]["name"]}

    def of(self, prefix: str) -> list[list[Sight]]:
        """Return the histories of the pods whose names have a prefix, in the order of their creation."""
        return [sights for uid, sights in self.pods.items() if self._names[uid].startswith(prefix)]


def _note(history: list, at: float, value: object) -> None:
    if not history or history[-1][1] != value:
        history.append((at, value))


def _sight(pod: KubeObject, now: Instant, is_gone: bool) -> Sight:
    statuses = pod["status"].get("containerStatuses") or [{"restartCount": 0}]
    return Sight(
        now / 1e9,
        pod["spec"].get("nodeName", ""),
        pod["status"]["phase"],
        "deletionTimestamp" in pod["metadata"],
        is_gone,
        is_ready(pod),
        statuses[0]["restartCount"],
    )


def first(sights: list[Sight], **wanted: object) -> float:
    """Return the first instant at which a pod had the given state."""
    return next(one.at for one in sights if all(getattr(one, name) == value for name, value in wanted.items()))


def about(at: float) -> object:
    """Return a value that equals an instant or one a few reactions later."""
    return pytest.approx(at, abs=REACTIONS)


def instants(history: Sequence[tuple[float, object]]) -> list[tuple[object, object]]:
    """Return a history for comparisons in which instants may be a few reactions apart."""
    return [(about(at), value) for at, value in history]


@pytest.fixture(scope="module", params=[OURS, REAL])
def long_failure(
    request: pytest.FixtureRequest, built_program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Story:
    """All pods are on node-0, because node-1 is cordoned at first; node-0 fails at 1000 s and returns at 3000 s."""
    events = "- {at: 0, cordon: node-1, for: 500}\n- {at: 1000, fail: node-0, for: 2000}\n"
    return Story(tmp_path_factory.mktemp("long"), at_work(request.param, built_program), events, until="5000")


def at_work(controllers: str, built_program: Callable[[str], str]) -> str:
    """Return the controllers; skip the test if they are real ones that are not built."""
    return controllers if controllers == OURS else built_program(controllers)


def test_a_node_is_unknown_after_the_grace_period_and_ready_when_it_returns(long_failure: Story) -> None:
    # The last renewal was at 990 s, seen at 990.1 s; the check at 1040.1 s is not more than 50 s later, the next one
    # is.
    _, *changes = long_failure.readiness["node-0"]
    assert changes == instants([(1045.1, "Unknown"), (3000, "True")])
    assert [status for _, status in long_failure.readiness["node-1"]] == ["True"]


def test_an_unreachable_node_has_both_taints_until_it_returns(
    long_failure: Story,
) -> None:
    no_schedule, no_execute = "unreachable:NoSchedule", "unreachable:NoExecute"
    _, *changes = long_failure.taints["node-0"]
    assert changes == instants(
        [
            (1045.1, {no_schedule}),
            (1045.2, {no_schedule, no_execute}),
            (3000, {no_execute}),
            (3000.1, set()),
        ]
    )


@pytest.mark.parametrize("name", ["web", "work", "db", "bare"])
def test_pods_of_a_failed_node_are_evicted_and_are_deleted_when_it_returns(long_failure: Story, name: str) -> None:
    lost = long_failure.of(name)[0]
    assert {one.node for one in lost if one.at > 1} == {"node-0"}
    assert first(lost, is_ready=False, phase="Running") == about(1045.1)
    assert first(lost, is_terminating=True) == about(1345.2)
    assert first(lost, is_gone=True) == about(3000)
    assert all(one.phase == "Running" for one in lost if one.at > 1), "nobody is there to say anything else"


def test_a_deployment_replaces_an_evicted_pod_at_once_and_a_job_a_second_later(
    long_failure: Story,
) -> None:
    # The Job controller synchronizes a second after a pod has changed (SyncJobBatchPeriod), and finds it deleted.
    for name, at in (("web", 1345.2), ("work", 1346.2)):
        _, new = long_failure.of(name)
        assert (new[0].at, new[-1].node) == (about(at), "node-1")
        assert first(new, phase="Running") == about(at)
    assert first(long_failure.of("work")[1], phase="Succeeded") == about(1346.2 + 3600)


def test_a_stateful_set_replaces_a_pod_after_its_deletion_and_a_bare_pod_is_not_replaced(
    long_failure: Story,
) -> None:
    _, new = long_failure.of("db")
    assert new[0].at == about(3000)
    assert len(long_failure.of("bare")) == 1


@both
def test_a_failure_shorter_than_the_grace_period_only_restarts_pods(
    controllers: str, built_program: Callable[[str], str], tmp_path: Path
) -> None:
    events = "- {at: 0, cordon: node-1, for: 500}\n- {at: 1000, fail: node-0, for: 30}\n"
    story = Story(tmp_path, at_work(controllers, built_program), events)

    assert [status for _, status in story.readiness["node-0"]] == ["True"]
    for name in ("web", "db", "bare"):
        (pod,) = story.of(name)
        assert (pod[-1].at, pod[-1].phase, pod[-1].restarts) == (1030, "Running", 1)
    failed, new = story.of("work")
    assert first(failed, phase="Failed") == 1030
    # The Job controller waits ten seconds before a retry (its back-off).
    assert new[0].at == about(1040)


@both
def test_pods_of_a_removed_node_are_garbage_collected(
    controllers: str, built_program: Callable[[str], str], tmp_path: Path
) -> None:
    events = "- {at: 0, cordon: node-1, for: 500}\n- {at: 1010, remove: node-0}\n"
    story = Story(tmp_path, at_work(controllers, built_program), events)

    # It checks every 20 s: at 1020.1 s it finds their node missing, and in the check 40 s later it deletes them. In the
    # real one this check and the end of the 40 s are due at the same instant, in an order that depends on other work.
    # If the check is first, the pods are deleted in the next one.
    given_up = first(story.of("web")[0], phase="Failed")
    assert given_up in ((about(1060.1),) if controllers == OURS else (about(1060.1), about(1080.1)))
    for name in ("work", "db", "bare"):
        assert first(story.of(name)[0], phase="Failed") == about(given_up)
    # The real collector deletes pods by name, and may delete the pod that the StatefulSet has created meanwhile.
    for name in ("web", "db"):
        assert first(story.of(name)[-1], phase="Running", node="node-1") == about(given_up)


@both
def test_nodes_that_fail_together_are_evicted_ten_seconds_apart(
    controllers: str, built_program: Callable[[str], str], tmp_path: Path
) -> None:
    events = "- {at: 1000, fail: [node-0, node-1]}\n"
    story = Story(tmp_path, at_work(controllers, built_program), events, platform="5x4,16Gi")

    evicting = [
        next(at for at, taints in story.taints[node] if "unreachable:NoExecute" in taints)
        for node in ("node-0", "node-1")
    ]
    assert evicting == [about(1045.2), about(1055.2)]


def evictions(story: Story, node: str) -> list[tuple[float, bool]]:
    """Return when a node got or lost a NoExecute taint."""
    history: list[tuple[float, bool]] = []
    for at, taints in story.taints[node]:
        _note(history, at, any(taint.endswith(":NoExecute") for taint in taints))
    return history[1:]


@both
def test_evictions_stop_while_most_nodes_of_a_small_zone_have_failed(
    controllers: str, built_program: Callable[[str], str], tmp_path: Path
) -> None:
    events = "- {at: 1000, fail: [node-0, node-1, node-2]}\n- {at: 1201, return: node-1}\n"
    story = Story(tmp_path, at_work(controllers, built_program), events, platform="5x4,16Gi")

    assert {node for node in story.taints if any(status == "Unknown" for _, status in story.readiness[node])} == {
        "node-0",
        "node-1",
        "node-2",
    }
    # Detected in the check at 1205.1 s; the first is evicted ten seconds later, as after any pause, the other ten
    # seconds after it.
    assert sorted([*evictions(story, "node-0"), *evictions(story, "node-2")]) == instants(
        [(1215.1, True), (1225.1, True)]
    )
    assert evictions(story, "node-1") == []


@both
def test_evictions_are_cancelled_when_all_nodes_have_failed(
    controllers: str, built_program: Callable[[str], str], tmp_path: Path
) -> None:
    events = "- {at: 1000, fail: node-0}\n- {at: 1100, fail: [node-1, node-2]}\n"
    story = Story(tmp_path, at_work(controllers, built_program), events, platform="3x4,16Gi")

    assert evictions(story, "node-0") == instants([(1045.2, True), (1145.1, False)])
    assert evictions(story, "node-1") == evictions(story, "node-2") == []
    assert not any(sight.is_terminating for sights in story.pods.values() for sight in sights)


@both
def test_two_runs_with_failures_are_identical(
    controllers: str, built_program: Callable[[str], str], tmp_path: Path
) -> None:
    events = "- {at: 100, fail: node-0, for: 700}\n- {at: 900, drain: node-1, for: 100}\n"
    journals = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        story = Story(tmp_path / name, at_work(controllers, built_program), events, until="1200")
        story.simulation.world.journal.flush()
        journals.append(story.journal.getvalue())
    assert journals[0] == journals[1]
    assert b'"event":"drain"' in journals[0]


def test_lease_renewals_do_not_keep_a_stuck_run_alive(built_program: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: stuck}\n"
        f"spec: {{template: {{spec: {{restartPolicy: Never, nodeSelector: {{no: such}}, {_CONTAINERS}}}}}}}\n",
        encoding="utf-8",
    )
    keys = {
        "workload": str(tmp_path / "job.yaml"),
        "platform": "2x4,16Gi",
        "scheduler": "kube-scheduler@1.34.4",
        "controllers": built_program(REAL),
        "events": [{"at": 100, "fail": "node-0", "for": 100}],
    }
    with pytest.raises(RunFailed, match="nothing more was due"):
        execute(make_scenario(keys, "test"), tmp_path / "out")
