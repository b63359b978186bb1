"""Tables: what `kubectl get` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.custom.instances.printer_columns import custom_printer, scale_printer
from batkube.api.groups.scheme.printing import DEFAULT_PRINTER, PRINTERS, printer_of
from batkube.api.printing import tables
from batkube.api.printing.ages import human_duration
from batkube.api.printing.columns import with_descriptions
from batkube.api.printing.json_paths import BadJsonPath, JsonPath, PathNotApplicable
from batkube.cluster.kinds import KindTable, Resource
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, instant_of
from batkube.schedulers.column_descriptions import read_column_descriptions
from conformance import CASES

TABLE = KindTable.builtin()
NOW = instant_of("2026-11-15T20:40:00Z")
SECOND = NANOSECONDS_PER_SECOND


def pod(**status: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {
        "metadata": {"name": "web", "creationTimestamp": "2026-11-15T20:36:20Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": status,
    }


def printed(storage: str, value: dict[str, Any]) -> dict[str, Any]:
    printer = PRINTERS[storage]
    return dict(
        zip((column["name"] for column in printer.columns), printer.cells(value, NOW), strict=storage != "ipaddresses")
    )


# Ages


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_ages_have_two_or_three_digits(seconds: int, text: str) -> None:
    assert human_duration(seconds * SECOND) == text


@given(st.integers(0, 10**12))
def test_an_age_never_exceeds_the_duration(seconds: int) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}

    told = sum(
        int(number) * units[unit] for number, unit in re.findall(r"(\d+)([smhdy])", human_duration(seconds * SECOND))
    )

    assert told <= seconds < max(told * 1.13, told + 60)


# Pods


def test_a_crashing_container_prints_its_reason_and_last_restart() -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2026-11-15T20:39:30Z"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    cells = printed(
        "pods",
        pod(
            phase="Running",
            containerStatuses=[
                {"name": "a", "restartCount": 3, "state": waiting, "lastState": ended},
                {"name": "b", "ready": True, "state": {"running": {}}},
            ],
        ),
    )

    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("1/2", "CrashLoopBackOff", "3 (30s ago)")
    assert cells["Age"] == "3m40s"


def test_the_reason_of_the_first_container_wins() -> None:
    states = [{"terminated": {"reason": "Completed"}}, {"terminated": {"exitCode": 137, "signal": 9}}]
    cells = printed("pods", pod(phase="Failed", containerStatuses=[{"state": state} for state in states]))

    assert cells["Status"] == "Completed"


@pytest.mark.parametrize(("ready", "word"), [("True", "Running"), ("False", "NotReady")], ids=["ready", "not ready"])
def test_a_pod_with_a_finished_sidecar_is_running_or_not_ready(ready: str, word: str) -> None:
    cells = printed(
        "pods",
        pod(
            phase="Running",
            conditions=[{"type": "Ready", "status": ready}],
            containerStatuses=[
                {"state": {"terminated": {"reason": "Completed"}}},
                {"ready": True, "state": {"running": {}}},
            ],
        ),
    )

    assert cells["Status"] == word


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({"terminated": {"exitCode": 2}}, "Init:ExitCode:2"),
        ({"terminated": {"exitCode": 2, "signal": 9}}, "Init:Signal:9"),
        ({"terminated": {"exitCode": 2, "reason": "Error"}}, "Init:Error"),
        ({"waiting": {"reason": "ImagePullBackOff"}}, "Init:ImagePullBackOff"),
        ({"waiting": {"reason": "PodInitializing"}}, "Init:1/2"),
        ({"running": {}}, "Init:1/2"),
    ],
)
def test_the_status_names_the_first_unfinished_init_container(state: dict[str, Any], word: str) -> None:
    value = pod(
        phase="Pending",
        initContainerStatuses=[
            {"name": "x", "state": {"terminated": {"exitCode": 0}}, "restartCount": 1},
            {"name": "y", "state": state},
        ],
    )
    value["spec"]["initContainers"] = [{"name": "x"}, {"name": "y"}]

    cells = printed("pods", value)

    assert (cells["Status"], cells["Ready"], cells["Restarts"]) == (word, "0/2", "1")


def test_a_started_sidecar_counts_as_a_container() -> None:
    value = pod(
        phase="Running", initContainerStatuses=[{"name": "s", "started": True, "ready": True, "restartCount": 2}]
    )
    value["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always"}]

    cells = printed("pods", value)

    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("1/3", "Running", "2")


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
    ],
)
def test_a_deleted_pod_is_terminating_unless_it_has_finished(status: dict[str, Any], word: str) -> None:
    value = pod(**status)
    value["metadata"]["deletionTimestamp"] = "2026-11-15T20:39:00Z"

    assert printed("pods", value)["Status"] == word


def test_a_gated_pod_prints_its_status_and_readiness_gates() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    value = pod(phase="Pending", conditions=[gated, {"type": "x/y", "status": "True"}])
    value["spec"]["readinessGates"] = [{"conditionType": "x/y"}, {"conditionType": "x/z"}]

    cells = printed("pods", value)

    assert (cells["Status"], cells["Readiness Gates"]) == ("SchedulingGated", "1/2")


def test_a_finished_pods_row_has_a_condition() -> None:
    row = tables.make_table(PRINTERS["pods"], [pod(phase="Failed")], NOW, metadata={})["rows"][0]

    assert [condition["reason"] for condition in row["conditions"]] == ["Failed"]


# Other kinds


def test_node_status_and_roles() -> None:
    node = {
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }

    cells = printed("nodes", node)

    assert (cells["Status"], cells["Roles"], cells["Age"]) == ("NotReady,SchedulingDisabled", "a,b", "<unknown>")


@pytest.mark.parametrize(
    ("conditions", "deleted", "word"),
    [
        ([("Complete", "True")], True, "Complete"),
        ([("Failed", "False"), ("Failed", "True")], False, "Running"),
        ([("Suspended", "True")], True, "Terminating"),
        ([("Suspended", "True")], False, "Suspended"),
        ([("SuccessCriteriaMet", "True"), ("FailureTarget", "True")], False, "FailureTarget"),
    ],
)
def test_the_status_of_a_job_follows_its_conditions(
    conditions: list[tuple[str, str]], deleted: bool, word: str
) -> None:
    metadata = {"name": "j", **({"deletionTimestamp": "2026-11-15T20:39:00Z"} if deleted else {})}
    listed = [{"type": kind, "status": status} for kind, status in conditions]

    cells = printed("jobs.batch", {"metadata": metadata, "spec": {"parallelism": 3}, "status": {"conditions": listed}})

    assert (cells["Status"], cells["Completions"], cells["Duration"]) == (word, "0/1 of 3", "")


def test_only_two_metrics_of_an_autoscaler_are_printed() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}
    packets = {"type": "Pods", "pods": {"target": {"averageValue": "1k"}}}
    value = {
        "metadata": {"name": "h"},
        "spec": {"metrics": [cpu, packets, {"type": "?"}], "maxReplicas": 3},
        "status": {"currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 7}}}]},
    }

    cells = printed("horizontalpodautoscalers.autoscaling", value)

    assert (cells["Targets"], cells["MinPods"]) == ("cpu: 7%/80%, <unknown>/1k + 1 more...", "<unset>")


def test_both_forms_of_an_event_are_printed_alike() -> None:
    old = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec"},
        "message": " pulled\n",
        "firstTimestamp": "2026-11-15T20:30:00Z",
        "lastTimestamp": "2026-11-15T20:39:00Z",
        "count": 4,
        "source": {"component": "kubelet", "host": "n1"},
    }
    new = {
        "metadata": {"name": "e"},
        "regarding": old["involvedObject"],
        "note": old["message"],
        "deprecatedFirstTimestamp": old["firstTimestamp"],
        "deprecatedLastTimestamp": old["lastTimestamp"],
        "deprecatedCount": 4,
        "deprecatedSource": old["source"],
    }

    assert printed("events", old) == printed("events.events.k8s.io", new)
    assert list(printed("events", old).values()) == [
        *("60s", "", "", "pod/web", "spec", "kubelet, n1", "pulled", "10m", 4, "e"),
    ]


def test_selectors_are_printed_in_the_notation_of_kubectl() -> None:
    selector = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "a", "operator": "DoesNotExist"},
        ],
    }
    value = {"metadata": {"name": "d"}, "spec": {"selector": selector, "replicas": 2}, "status": {}}

    assert printed("deployments.apps", value)["Selector"] == "!a,b=1,c in (x,y)"


@pytest.mark.parametrize("resource", TABLE.resources(), ids=lambda resource: resource.group_resource)
def test_an_object_with_nothing_but_a_name_can_be_printed(resource: Resource) -> None:
    """Bookmarks are such objects, so every kind must be printable from one."""
    printer = printer_of(resource)

    cells = printer.cells({"metadata": {"name": "x"}}, NOW)

    assert "x" in cells
    assert len(cells) == len(printer.columns) + (resource.plural == "ipaddresses")


# Tables


def test_only_metadata_is_included_unless_told_otherwise() -> None:
    value = {"metadata": {"name": "a"}, "data": {}}

    def included(what: str) -> Any:  # noqa: ANN401 - any JSON
        return tables.make_table(DEFAULT_PRINTER, [value], NOW, metadata={}, include_object=what)["rows"][0]["object"]

    assert included("None") is None
    assert included("Object") is value
    assert included("") == included("Metadata")
    assert included("") == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}


def test_the_bookmark_that_ends_initial_events_always_has_its_object() -> None:
    metadata = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}

    made = tables.make_table(
        PRINTERS["configmaps"], [{"metadata": metadata}], NOW, metadata=metadata, include_object="None", headers=False
    )

    assert made["columnDefinitions"] is None
    assert made["metadata"] == {"resourceVersion": "7"}
    assert made["rows"][0]["cells"] == ["", 0, "<unknown>"]
    assert made["rows"][0]["object"]["metadata"] is metadata


def test_an_unknown_value_of_include_object_is_rejected() -> None:
    assert tables.include_problem("Metadata") is None
    assert "must be 'Metadata', 'Object', 'None', or empty" in (tables.include_problem("Bogus") or "")


def test_flow_schemas_are_listed_by_precedence() -> None:
    values = [{"metadata": {"name": name}, "spec": {"matchingPrecedence": rank}} for name, rank in (("a", 9), ("b", 1))]

    made = tables.make_table(PRINTERS["flowschemas.flowcontrol.apiserver.k8s.io"], values, NOW, metadata={})

    assert [row["cells"][0] for row in made["rows"]] == ["b", "a"]


def _resource_of(path: str) -> Resource | None:
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    return TABLE.resource(group, version, (rest[2:] if rest[0] == "namespaces" and len(rest) > 2 else rest)[0])


def _ageless(cell: Any) -> Any:  # noqa: ANN401 - any JSON
    return re.sub(r"<invalid>|(?:\d+[smhd])+|\d{4}-\S+Z", "…", cell) if isinstance(cell, str) else cell


def test_recorded_objects_are_printed_as_by_kube_apiserver(tmp_path: Path) -> None:
    """Ages are not compared, and column descriptions only if Kubernetes' source is available."""
    compared, words = 0, read_column_descriptions("v1.34.4", tmp_path)
    for case in sorted((CASES / "table").glob("*.json")):
        objects: dict[tuple[str, str], dict[str, Any]] = {}
        for step in json.loads(case.read_text(encoding="utf-8"))["steps"]:
            body = step.get("response", {}).get("body")
            resource = _resource_of(step["request"]["path"]) if isinstance(body, dict) else None
            if resource is None or not isinstance(body, dict) or step["request"]["path"].endswith("/scale"):
                continue
            if body["kind"] != "Table":
                objects[resource.plural, body.get("metadata", {}).get("name", "")] = body
                continue
            columns = [one if words else {**one, "description": ""} for one in body["columnDefinitions"]]
            assert with_descriptions(printer_of(resource), resource.storage, words).columns == columns
            names = [column["name"] for column in body["columnDefinitions"]].index("Name")
            for row in body["rows"] or ():
                value = objects.get((resource.plural, row["cells"][names]))
                if value is not None:
                    made = tables.make_table(printer_of(resource), [value], NOW, metadata={})["rows"][0]
                    assert [*map(_ageless, made["cells"])] == [*map(_ageless, row["cells"])], (case.name, value)
                    assert made.get("conditions") == row.get("conditions")
                    compared += 1
    assert compared > 100


# Custom columns

WIDGET = {
    "metadata": {"name": "w", "creationTimestamp": "2026-11-15T20:39:55Z"},
    "spec": {"size": 3, "ratio": 0.5, "tags": ["a", "b"], "on": True, "a.b": "dotted"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".spec.size", "3"),
        ("string", ".spec.ratio", "0.5"),
        ("string", ".spec.tags", '["a","b"]'),
        ("string", ".spec.on", "true"),
        ("string", ".spec.missing", None),
        ("integer", ".spec.size", 3),
        ("integer", ".spec.ratio", 0),
        ("integer", ".spec.on", None),
        ("number", ".spec.size", 3.0),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.size", None),
        ("date", ".metadata.creationTimestamp", "5s"),
        ("date", ".metadata.name", "<invalid>"),
        ("date", ".spec.size", None),
        ("string", '.status.conditions[?(@.type=="Ready")].status', "True"),
        ("string", ".status.conditions[?(@.type == 'Old')].status", "False"),
        ("string", ".spec.tags[9]", None),
        ("string", ".spec.tags[-1]", "b"),
        ("string", ".spec.tags[*]", "a"),
        ("string", r".spec.a\.b", "dotted"),
        ("string", ".spec['a.b']", None),
    ],
)
def test_a_custom_column_prints_values_of_its_type(kind: str, path: str, cell: object) -> None:
    printer = custom_printer([{"name": "C", "type": kind, "jsonPath": path}])

    assert printer.cells(WIDGET, NOW) == ["w", cell]
    assert type(printer.cells(WIDGET, NOW)[1]) is type(cell)


def test_a_custom_resource_without_columns_prints_its_age() -> None:
    printer = custom_printer(None)

    assert [column["name"] for column in printer.columns] == ["Name", "Age"]
    assert printer.cells(WIDGET, NOW) == ["w", "5s"]


def test_a_scale_is_printed_alike_for_built_in_and_custom_kinds() -> None:
    deployments = TABLE.resource("apps", "v1", "deployments")
    assert deployments is not None
    custom = msgspec.structs.replace(deployments, custom=True)
    scale = {"metadata": WIDGET["metadata"], "spec": {"replicas": 3}, "status": {"replicas": 1}}

    printers = [scale_printer(resource) for resource in (deployments, custom)]

    assert [printer.cells(scale, NOW) for printer in printers] == [["w", 3, 1, "5s"]] * 2
    assert [[column["name"] for column in printer.columns] for printer in printers] == [
        ["Name", "Desired", "Available", "Age"]
    ] * 2


def test_columns_after_an_invalid_path_are_dropped() -> None:
    good = {"name": "A", "type": "string", "jsonPath": ".spec.size", "priority": 1}
    bad = {"name": "B", "type": "string", "jsonPath": ".spec[", "description": "x"}

    printer = custom_printer([good, bad, good])

    assert [(column["name"], column["priority"]) for column in printer.columns] == [("Name", 0), ("A", 1)]
    assert printer.columns[1]["description"] == "Custom resource definition column (in JSONPath format): .spec.size"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a[0:3:2].n", [1, 3]),
        (".a[1:].n", [2, 3]),
        (".a[:-1].n", [1, 2]),
        (".a[0,2].n", [1, 3]),
        ("..n", [1, 2, 3]),
        (".a[?(@.n>1)].n", [2, 3]),
        (".a[?(@.m)].n", [3]),
        (".*", [[{"n": 1}, {"n": 2}, {"n": 3, "m": 0}], "t"]),
        ("$.b", ["t"]),
    ],
)
def test_paths_yield_the_same_values_as_in_client_go(path: str, found: list[Any]) -> None:
    assert JsonPath(path).evaluate({"a": [{"n": 1}, {"n": 2}, {"n": 3, "m": 0}], "b": "t"}) == found


@given(st.text("ab.[]?()@*,:'\"=-01 \\", max_size=12))
def test_any_path_is_valid_or_raises_a_documented_error(path: str) -> None:
    try:
        values = JsonPath(path).evaluate({"a": [{"b": 1}], "b": "t"})
    except (BadJsonPath, PathNotApplicable):
        return
    assert isinstance(values, list)


def test_ages_of_a_table_depend_on_the_given_instant() -> None:
    later = Instant(NOW + 3600 * SECOND)

    assert PRINTERS["pods"].cells(pod(), later)[4] == "63m"
