"""Read events files in our format and in Batsim's."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.timeline.entries import AddedMachines, EventAction, EventNodes, Scaling, Taint
from batkube.workloads.timeline.reader import read_events


def read(folder: Path, text: str) -> list:
    (folder / "events.yaml").write_text(text, encoding="utf-8")
    return list(read_events(folder / "events.yaml"))


def test_an_entry_has_a_schedule_an_action_and_nodes(tmp_path: Path) -> None:
    once, repeated, random = read(
        tmp_path,
        """
        - {at: 1000, fail: node-3, for: 30m}
        - {at: 1h, every: 1d, count: 5, drain: 0-2 7}
        - {between: "exponential:2592000", fail: all, for: "weibull:0.7,3600", until: 30d}
        """,
    )

    assert (once.action, once.schedule.at) == (EventAction.FAIL, seconds(1000))
    assert once.nodes == EventNodes(names=("node-3",))
    assert once.duration.parameters == (1800,)
    assert (repeated.schedule.every, repeated.schedule.count, repeated.nodes.ids) == (seconds(86400), 5, 0b10000111)
    assert random.schedule.interval.describe() == "exponential:2592000"
    assert random.duration.describe() == "weibull:0.7,3600"
    assert (random.nodes.is_all, random.schedule.until) == (True, seconds(30 * 86400))


def test_an_entry_has_the_parameter_of_its_action(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text("{apiVersion: v1, kind: Service, metadata: {name: web}}", encoding="utf-8")
    taint, untaint, label, add, reclaim, apply, delete, scale = read(
        tmp_path,
        """
        - {at: 0, taint: {zone: a}, with: "gpu=yes:NoExecute"}
        - {at: 0, untaint: node-1, with: gpu}
        - {at: 0, label: node-1, with: {disk: ssd, old: null}}
        - {at: 0, add: "2x4,16Gi", names: spot}
        - {at: 0, reclaim: node-1, notice: 2m}
        - {at: 0, apply: web.yaml}
        - {at: 0, delete: Service/web}
        - {at: 0, scale: Deployment/web, to: 5, namespace: shop}
        """,
    )

    assert (taint.nodes.labels, taint.detail) == ({"zone": "a"}, Taint("gpu", "yes", "NoExecute"))
    assert untaint.detail == Taint("gpu", "", "")
    assert label.detail == {"disk": "ssd", "old": None}
    assert add.detail == AddedMachines("2x4,16Gi", "spot")
    assert reclaim.notice == seconds(120)
    assert apply.detail[0]["kind"] == "Service"
    assert delete.detail[0]["metadata"] == {"name": "web", "namespace": "default"}
    assert scale.detail == Scaling("Deployment", "shop", "web", 5)


def test_unavailable_machines_in_batsims_events_are_cordoned_in_order_of_time(tmp_path: Path) -> None:
    entries = read(
        tmp_path,
        '{"timestamp": 20.5, "type": "machine_available", "resources": "0-1 3"}\n\n'
        '{"timestamp": 10, "type": "machine_unavailable", "resources": "0-1 3"}\n',
    )

    assert [(entry.action, entry.schedule.at, entry.nodes.ids) for entry in entries] == [
        (EventAction.CORDON, seconds(10), 0b1011),
        (EventAction.UNCORDON, seconds("20.5"), 0b1011),
    ]


WRONG = {
    "{at: 1}": "is not a list of events",
    "- 5": "[0]: is 5, which is not an object",
    "- {at: -5, fail: n}": "[0].at: is -5, which is negative",
    "- {at: -5s, fail: n}": "[0].at: '-5s' is negative",
    "- {at: soon, fail: n}": "[0].at: 'soon' is not a duration",
    "- {fail: n}": "[0]: has no time",
    "- {at: 5}": "[0]: has no known action",
    "- {at: 5, explode: n}": "[0]: has no known action (its keys: explode)",
    "- {at: 5, fail: n, cordon: n}": "[0]: has 2 actions",
    "- {at: 5, fail: n, with: a}": "[0].with: is not a key of `fail`",
    "- {at: 5, fail: []}": "[0].fail: is [], which is not a selection of nodes",
    "- {at: 5, fail: 99999999999}": "which contains a machine id of more than 7 digits",
    "- {at: 5, fail: n, count: 2}": "[0].count: requires `every`",
    "- {at: 5, fail: n, every: 0}": "[0].every: is 0",
    "- {at: 5, every: 1, count: 0, fail: n}": "[0].count: is 0, but must be at least 1",
    "- {at: 5, every: 1, until: 2, fail: n}": "[0].until: is earlier than `at`",
    "- {at: 5, uncordon: n, for: 5}": "[0].for: cannot be used with `uncordon`",
    "- {at: 5, fail: n, for: 0}": "[0].for: is 0 s, but must be positive",
    "- {between: 'gauss:3', fail: n}": "[0].between: 'gauss' is not a distribution",
    "- {between: 'exponential:-3', fail: n}": "[0].between: exponential",
    "- {between: 5, every: 5, fail: n}": "[0].every: cannot be combined with `between`",
    "- {between: 5, scale: Deployment/web, to: 3}": "[0].between: is drawn per node",
    "- {at: 5, every: 5, add: 1x1}": "[0]: adds machines without end",
    "- {at: 5, taint: n, with: gpu}": "[0].with: is 'gpu', which is not a taint",
    "- {at: 5, taint: n, with: 'gpu:Never'}": "[0].with: is 'gpu:Never', which is not a taint",
    "- {at: 5, taint: n, with: 'a/b/c=v:NoSchedule'}": "[0].with: has 'a/b/c': a qualified name must consist of",
    "- {at: 5, label: n, with: {bad key: x}}": "[0].with.bad key: has 'bad key': name part must consist of",
    "- {at: 5, label: n, with: {disk: a b}}": "[0].with.disk: has 'a b': a valid label must be",
    "- {at: 5, label: n, with: 5}": "[0].with: is 5, which is not an object",
    "- {at: 5, scale: web, to: 3}": "[0].scale: is 'web', which is not a reference to an object",
    "- {at: 5, scale: Deployment/web, to: -3}": "[0].to: is -3, which is negative",
    "- {at: 5, apply: nowhere.yaml}": "nowhere.yaml",
    "- {at: 5, apply: {kind: Pod}}": "[0].apply[0].apiVersion: is missing",
    '{"timestamp": -1, "type": "machine_available", "resources": "0"}': "line 1.timestamp: is -1, which is negative",
    '{"timestamp": 1, "type": "earthquake", "resources": "0"}': "line 1.type: is 'earthquake'",
    '{"timestamp": 1, "type": "machine_available", "resources": "x"}': "line 1.resources: 'x' is not an interval",
    '{"timestamp": 1, "type": "machine_available", "resources": "0"}\nnonsense': "line 2: is not JSON",
}


@pytest.mark.parametrize("text", list(WRONG))
def test_an_invalid_events_file_is_rejected_with_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)

    assert WRONG[text] in str(error.value)
    assert str(error.value).startswith(str(tmp_path))
