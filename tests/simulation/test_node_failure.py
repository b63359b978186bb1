"""A node fails and comes back, with our controllers: every instant as Kubernetes' defaults put it.

A kubelet renews its lease every 10 s, the monitor looks every 5 s and has had enough after more than 50 s, pods
tolerate an unreachable node for 300 s, and a controller acts a millisecond after it heard of something.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import pytest

from batkube.cluster.references import condition_of
from batkube.cluster.store import DELETED, Batch, KubeObject
from batkube.kernel.instants import Instant
from batkube.kernel.journal import Journal
from batkube.simulation.assembly import Simulation, assemble, read_inputs
from batkube.simulation.scenario import make_scenario

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
    """What was seen of a pod at an instant."""

    at: float
    node: str
    phase: str
    is_terminating: bool
    is_gone: bool
    restarts: int


class Story:
    """A run of which every change to nodes and pods is told."""

    def __init__(self, folder: Path, events: str, platform: str = "2x4,16Gi", **more: str) -> None:
        (folder / "objects.yaml").write_text(OBJECTS, encoding="utf-8")
        (folder / "events.yaml").write_text(events, encoding="utf-8")
        values = {
            "workload": [str(folder / "objects.yaml")],
            "platform": platform,
            "events": str(folder / "events.yaml"),
            "until": "5000",
            **more,
        }
        inputs = read_inputs(make_scenario(values, "test"))
        files = io.StringIO(), io.StringIO()
        self.simulation: Simulation = assemble(inputs, Journal(io.BytesIO()), *files, folder / "scheduler")
        self.readiness: dict[str, list[tuple[float, str]]] = {}
        self.taints: dict[str, list[tuple[float, set[str]]]] = {}
        self.pods: dict[str, list[Sight]] = {}
        self.simulation.world.store.listen("nodes", self._hear_nodes)
        self.simulation.world.store.listen("pods", self._hear_pods)
        try:
            self.simulation.loop.run(self.simulation.passage, self.simulation.work.is_done, lambda now: None)
        finally:
            if self.simulation.programs is not None:
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
        """Return the stories of the pods whose names begin so, in the order in which they were made."""
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
        statuses[0]["restartCount"],
    )


def first(sights: list[Sight], **wanted: object) -> float:
    """Return when a pod was first seen as it is wanted."""
    return next(one.at for one in sights if all(getattr(one, name) == value for name, value in wanted.items()))


@pytest.fixture(scope="module")
def long_failure(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """All pods are on node-0, for node-1 is cordoned at first; node-0 fails at 1000 s and is back at 3000 s."""
    events = "- {at: 0, cordon: node-1, for: 500}\n- {at: 1000, fail: node-0, for: 2000}\n"
    return Story(tmp_path_factory.mktemp("long"), events)


def test_a_node_is_unknown_after_the_grace_period_and_ready_as_soon_as_it_is_back(long_failure: Story) -> None:
    # The last renewal was at 990 s; the look at 1040 s is not yet later than 50 s after, that at 1045 s is.
    assert long_failure.readiness["node-0"][-3:] == [(0, "True"), (1045, "Unknown"), (3000, "True")]


def test_an_unreachable_node_is_tainted_at_once_and_freed_of_the_taint_that_evicts_at_the_next_look(
    long_failure: Story,
) -> None:
    unreachable = {"unreachable:NoSchedule", "unreachable:NoExecute"}
    assert long_failure.taints["node-0"][-3:] == [
        (1045.001, unreachable),
        (3000.001, {"unreachable:NoExecute"}),
        (3005, set()),
    ]


@pytest.mark.parametrize("name", ["web", "work", "db", "bare"])
def test_pods_are_not_ready_then_evicted_after_their_tolerations_and_gone_when_the_node_is_back(
    long_failure: Story, name: str
) -> None:
    lost = long_failure.of(name)[0]
    assert {one.node for one in lost if one.at > 1} == {"node-0"}
    assert first(lost, is_terminating=True) == 1345.002
    assert first(lost, is_gone=True) == 3000
    assert all(one.phase == "Running" for one in lost if one.at > 1), "nobody is there to say anything else"


def test_a_deployment_has_a_new_pod_elsewhere_as_soon_as_its_is_evicted_and_a_job_a_second_later(
    long_failure: Story,
) -> None:
    # The Job controller looks a second after a pod has changed, and finds it deleted: job_controller's
    # SyncJobBatchPeriod.
    for name, at in (("web", 1345.003), ("work", 1346.002)):
        _, new = long_failure.of(name)
        assert (new[0].at, new[-1].node) == (at, "node-1")
        assert first(new, phase="Running") == at
    assert first(long_failure.of("work")[1], phase="Succeeded") == 1346.002 + 3600


def test_a_stateful_set_waits_until_its_pod_is_really_gone_and_a_bare_pod_is_never_replaced(
    long_failure: Story,
) -> None:
    _, new = long_failure.of("db")
    assert new[0].at == 3000.001
    assert len(long_failure.of("bare")) == 1


def test_a_failure_shorter_than_the_grace_period_is_noticed_by_nobody_but_the_pods(tmp_path: Path) -> None:
    story = Story(tmp_path, "- {at: 0, cordon: node-1, for: 500}\n- {at: 1000, fail: node-0, for: 30}\n")

    assert [status for _, status in story.readiness["node-0"]] == ["True"]
    for name in ("web", "db", "bare"):
        (pod,) = story.of(name)
        assert (pod[-1].at, pod[-1].phase, pod[-1].restarts) == (1030, "Running", 1)
    failed, new = story.of("work")
    assert first(failed, phase="Failed") == 1030
    # The Job controller waits ten seconds before it tries again (backoffLimit).
    assert 1030 < new[0].at < 1050


def test_the_pods_of_a_node_that_was_taken_away_are_given_up_by_the_collector_of_lost_pods(tmp_path: Path) -> None:
    story = Story(tmp_path, "- {at: 0, cordon: node-1, for: 500}\n- {at: 1010, remove: node-0}\n")

    # It looks every 20 s: at 1020 s it finds them lost, and 40 s later the node is still gone.
    for name in ("web", "work", "db", "bare"):
        assert first(story.of(name)[0], phase="Failed") == 1060
    assert first(story.of("db")[1], phase="Running") == pytest.approx(1060.001)
    assert all(sights[-1].node == "node-1" for sights in (story.of("web")[1], story.of("db")[1]))


def test_of_two_nodes_that_fail_together_the_pods_of_one_have_ten_seconds_more(tmp_path: Path) -> None:
    story = Story(tmp_path, "- {at: 1000, fail: [node-0, node-1]}\n", platform="5x4,16Gi")

    evicting = [
        next(at for at, taints in story.taints[node] if "unreachable:NoExecute" in taints)
        for node in ("node-0", "node-1")
    ]
    assert evicting == [1045.001, 1055.001]
