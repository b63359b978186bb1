from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.managed_fields.applied_objects import CONFIG_MAPS, DEPLOYMENTS, SERVICES, START, apply, resource, stored

from batkube.api.managed_fields.field_sets import contains, paths
from batkube.api.managed_fields.server_side_apply import (
    LAST_APPLIED,
    ApplyResult,
    BadApplyConfiguration,
    Conflicts,
    apply_configuration,
)
from batkube.api.managed_fields.typed_values import SchemaMismatch
from batkube.api.managed_fields.updates import entries_after_update
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, seconds
from conformance import CASES


def config_map(**data: Any) -> KubeObject:  # noqa: ANN401 - any JSON
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def update(live: KubeObject, manager: str, kind: Resource = CONFIG_MAPS, **fields: Any) -> KubeObject:  # noqa: ANN401
    new = {**live, **fields}
    return stored(ApplyResult(new, entries_after_update(new, live, kind, manager=manager, now=START)))


def sets(value: KubeObject) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in value["metadata"]["managedFields"]}


# Merging and removing


def test_an_applier_owns_leaves_and_not_their_parents() -> None:
    live = apply(config_map(x="1"))
    assert live["data"] == {"x": "1"}
    (entry,) = live["metadata"]["managedFields"]
    assert entry == {
        "manager": "m1",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2000-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:x": {}}},
    }


def test_fields_no_longer_applied_are_removed() -> None:
    live = apply(config_map(x="1", y="1"))
    assert apply(config_map(y="1"), live)["data"] == {"y": "1"}


def test_a_struct_is_removed_with_its_last_field() -> None:
    live = apply(config_map(x="1"))
    bare = {key: value for key, value in config_map().items() if key != "data"}
    assert "data" not in apply(bare, live)


def test_fields_with_another_owner_are_kept() -> None:
    live = apply(config_map(x="1", s="same"))
    live = apply(config_map(s="same"), live, manager="m2")
    live = apply(config_map(x="1"), live)
    assert live["data"] == {"x": "1", "s": "same"}
    assert sets(live) == {"m1": {"f:data": {"f:x": {}}}, "m2": {"f:data": {"f:s": {}}}}


def test_list_items_merge_by_their_keys_and_keep_their_neighbours() -> None:
    def deployment(*containers: dict[str, Any]) -> KubeObject:
        template = {"spec": {"containers": list(containers)}}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"template": template},
        }

    live = apply(deployment({"name": "a", "image": "1"}, {"name": "b", "image": "1"}), kind=DEPLOYMENTS)
    other = deployment({"name": "c", "image": "1"}, {"name": "b", "env": [{"name": "E", "value": "1"}]})
    live = apply(other, live, manager="m2", kind=DEPLOYMENTS)
    assert live["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "1", "resources": {}},
        {"name": "c", "image": "1", "resources": {}},
        {"name": "b", "image": "1", "env": [{"name": "E", "value": "1"}], "resources": {}},
    ]
    live = apply(deployment({"name": "b", "image": "1"}), live, kind=DEPLOYMENTS)
    names = [container["name"] for container in live["spec"]["template"]["spec"]["containers"]]
    assert names == ["c", "b"]


def test_an_omitted_key_has_its_default() -> None:
    def service(**port: Any) -> KubeObject:  # noqa: ANN401 - any field
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [port]}}

    live = apply(service(port=80), kind=SERVICES)
    live = apply(service(port=80, protocol="TCP", name="http"), live, kind=SERVICES)
    assert live["spec"]["ports"] == [{"port": 80, "targetPort": 0, "protocol": "TCP", "name": "http"}]


def test_an_apply_that_changes_nothing_returns_the_object_itself() -> None:
    live = apply(config_map(x="1"))
    again = apply_configuration(config_map(x="1"), live, CONFIG_MAPS, manager="m1", now=Instant(seconds(9)))
    assert again.object is live
    assert again.entries == live["metadata"]["managedFields"]


def test_the_entry_of_a_second_owner_of_the_same_value_has_no_timestamp() -> None:
    live = apply(config_map(x="1"), apply(config_map(x="1")), manager="m2")
    assert [entry.get("time") for entry in live["metadata"]["managedFields"]] == [None, "2000-01-01T00:00:00Z"]


def test_the_stored_object_is_never_shared_with_the_new_one() -> None:
    live = apply(config_map(x="1"))
    before = copy.deepcopy(live)
    apply(config_map(x="1", y="1"), live)["data"]["x"] = "edited"
    assert live == before


def test_an_object_without_managers_gets_the_manager_before_first_apply() -> None:
    live = {**config_map(x="1"), "metadata": {"name": "a", "uid": "u"}}
    with pytest.raises(Conflicts, match=r'conflict with "before-first-apply" using v1: .data.x'):
        apply(config_map(x="2"), live)


# Conflicts


def test_a_conflict_names_the_manager_and_the_field() -> None:
    live = apply(config_map(x="1"))
    with pytest.raises(Conflicts) as raised:
        apply(config_map(x="2"), live, manager="m2")
    assert str(raised.value) == 'Apply failed with 1 conflict: conflict with "m1": .data.x'
    assert raised.value.causes() == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.x"}
    ]


def test_several_conflicts_are_grouped_by_manager() -> None:
    live = update(apply(config_map(x="1", y="1")), "editor", data={"x": "1", "y": "1", "z": "1"})
    with pytest.raises(Conflicts) as raised:
        apply(config_map(x="2", y="2", z="2"), live, manager="m2")
    assert str(raised.value) == (
        'Apply failed with 3 conflicts: conflicts with "editor" using v1:\n- .data.z\n'
        'conflicts with "m1":\n- .data.x\n- .data.y'
    )


def test_force_takes_ownership_of_the_field() -> None:
    live = apply(config_map(x="2"), apply(config_map(x="1")), manager="m2", force=True)
    assert sets(live) == {"m2": {"f:data": {"f:x": {}}}}


def test_kubectl_takes_over_from_client_side_apply_without_conflict() -> None:
    last = json.dumps(config_map(x="1"))
    live = {**config_map(x="1"), "metadata": {"name": "a", "annotations": {LAST_APPLIED: last}}}
    live = stored(
        ApplyResult(live, entries_after_update(live, None, CONFIG_MAPS, manager="kubectl-client-side-apply", now=START))
    )
    with pytest.raises(Conflicts):
        apply(config_map(x="2"), live, manager="other")
    after = apply(config_map(x="2"), live, manager="kubectl")
    assert after["data"] == {"x": "2"}
    assert json.loads(after["metadata"]["annotations"][LAST_APPLIED]) == config_map(x="2")


def test_kubectl_conflicts_with_a_later_change_by_another_manager() -> None:
    last = json.dumps(config_map(x="1"))
    live = {**config_map(x="1"), "metadata": {"name": "a", "annotations": {LAST_APPLIED: last}}}
    live = stored(
        ApplyResult(live, entries_after_update(live, None, CONFIG_MAPS, manager="kubectl-client-side-apply", now=START))
    )
    live = update(live, "editor", data={"x": "3"})
    with pytest.raises(Conflicts, match=r'"editor" using v1: .data.x'):
        apply(config_map(x="2"), live, manager="kubectl")


# Configurations that do not fit


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**config_map(), "bogus": 1}, ".bogus: field not declared in schema"),
        (config_map(x=5), ".data.x: expected string, got &value.valueUnstructured{Value:5}"),
        ({**config_map(), "data": "x"}, ".data: expected map, got &{x}"),
        ({**config_map(), "immutable": "x"}, ".immutable: expected boolean, got &{x}"),
        (config_map(x=1, y=None, z=[None]), "errors:\n  .data.x: expected string"),
    ],
)
def test_schema_errors_equal_those_of_kube_apiserver(config: KubeObject, message: str) -> None:
    with pytest.raises(SchemaMismatch) as raised:
        apply(config)
    assert str(raised.value).startswith(f"failed to create typed patch object (/a; /v1, Kind=ConfigMap): {message}")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ([{"name": "A"}, {"name": "A"}], '.env: duplicate entries for key [name="A"]'),
        (["A"], ".env: element 0: associative list with keys may not have non-map elements"),
        ([{"name": "A", "value": 1}], '.env[name="A"].value: expected string'),
    ],
)
def test_list_items_must_have_unique_keys(env: list[Any], message: str) -> None:
    container = {"name": "c", "env": env}
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    with pytest.raises(SchemaMismatch) as raised:
        apply(config, kind=resource("pods"))
    assert f'.spec.containers[name="c"]{message}' in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"apiVersion": "apps/v1"}, "invalid object type: apps/v1, Kind=ConfigMap"),
        ({"metadata": {"name": "a", "managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_configurations_of_another_kind_or_object_are_rejected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadApplyConfiguration, match=message):
        apply({**config_map(), **change})


# Several versions


def test_conflicts_are_detected_in_the_version_of_each_manager() -> None:
    """A field that another version calls `note` is reported as a conflict under that name."""

    def convert(value: KubeObject, version: str) -> tuple[KubeObject, Schema] | None:
        if version != "old/v1":
            return None if version == "gone/v1" else (value, CONFIG_MAPS.schema)
        converted = {**value, "data": {"note" if key == "x" else key: text for key, text in value["data"].items()}}
        return converted, CONFIG_MAPS.schema

    def entry(manager: str, version: str, field: str) -> dict[str, Any]:
        fields = {"f:data": {field: {}}}
        about = {"manager": manager, "operation": "Update", "apiVersion": version}
        return {**about, "fieldsType": "FieldsV1", "fieldsV1": fields}

    live = {**config_map(x="1")}
    live["metadata"] = {"name": "a", "uid": "u"}
    live["metadata"]["managedFields"] = [entry("old", "old/v1", "f:note"), entry("gone", "gone/v1", "f:x")]
    with pytest.raises(Conflicts, match=r'conflict with "old" using old/v1: .data.note'):
        apply(config_map(x="2"), live, convert=convert)
    assert set(sets(apply(config_map(x="2"), live, convert=convert, force=True))) == {"m1"}


def test_a_value_that_became_atomic_is_owned_as_a_whole() -> None:
    def widgets(list_type: str) -> Resource:
        items = Schema(Shape.LIST, items=Schema(Shape.STRING), list_type=list_type)
        spec = Schema(Shape.STRUCT, fields={"tags": Field("tags", items)})
        root = Schema(Shape.STRUCT, fields={**CONFIG_MAPS.schema.fields, "spec": Field("spec", spec)})
        return Resource(
            group="",
            version="v1",
            kind="Widget",
            plural="widgets",
            singular="widget",
            namespaced=True,
            verbs=(),
            schema=root,
            custom=True,
        )

    config: KubeObject = {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"tags": ["a"]}}
    live = apply(config, kind=widgets("set"))
    assert sets(live) == {"m1": {"f:spec": {"f:tags": {'v:"a"': {}}}}}
    other = {**config, "metadata": {"name": "w", "labels": {"l": "1"}}, "spec": {}}
    live = apply(other, live, manager="m2", kind=widgets("atomic"))
    assert sets(live)["m1"] == {"f:spec": {"f:tags": {}}}


def deployment(replicas: int) -> KubeObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": replicas, "paused": True},
    }


# Laws, for configurations without empty lists and maps: those are owned, but nothing is left of them in the object

_NAMES = st.sampled_from("abc")
_CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": _NAMES},
        optional={
            "image": st.sampled_from("12"),
            "args": st.lists(_NAMES, min_size=1, max_size=2),
            "env": st.lists(
                st.fixed_dictionaries({"name": _NAMES, "value": _NAMES}),
                min_size=1,
                unique_by=lambda each: each["name"],
            ),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda container: container["name"],
)
_PODS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("p")},
            optional={
                "labels": st.dictionaries(_NAMES, _NAMES, min_size=1, max_size=3),
                "finalizers": st.lists(_NAMES, unique=True, min_size=1, max_size=3),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"nodeName": _NAMES},
            optional={
                "containers": _CONTAINERS,
                "nodeSelector": st.dictionaries(_NAMES, _NAMES, min_size=1, max_size=2),
            },
        ),
    }
)
PODS = resource("pods")


@settings(max_examples=60, deadline=None)
@given(_PODS, _PODS, _PODS)
def test_applying_again_changes_nothing(first: KubeObject, second: KubeObject, third: KubeObject) -> None:
    live = apply(first, kind=PODS)
    live = apply(second, live, manager="m2", kind=PODS, force=True)
    live = apply(third, live, kind=PODS, force=True)
    again = apply_configuration(third, live, PODS, manager="m1", now=Instant(seconds(9)))
    assert again.object is live
    assert again.entries == live["metadata"]["managedFields"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), _PODS), min_size=1, max_size=5))
def test_all_owned_fields_exist(history: list[tuple[str, KubeObject]]) -> None:
    live: KubeObject | None = None
    for manager, config in history:
        live = apply(config, live, manager=manager, kind=PODS, force=True)
    assert live is not None
    for entry in live["metadata"]["managedFields"]:
        for path in paths(entry["fieldsV1"]):
            assert reaches(live, path), path
    assert live["spec"]["nodeName"] == history[-1][1]["spec"]["nodeName"]


@settings(max_examples=60, deadline=None)
@given(_PODS, _NAMES, _NAMES)
def test_force_makes_one_owner_of_a_changed_leaf(config: KubeObject, first: str, second: str) -> None:
    expected = {**config, "spec": {**config["spec"], "nodeName": first}}
    live = apply(expected, kind=PODS)
    live = apply({**expected, "spec": {"nodeName": second}}, live, manager="m2", kind=PODS, force=True)
    owners = [name for name, fields in sets(live).items() if contains(fields, "f:spec", "f:nodeName")]
    assert sorted(owners) == (["m1", "m2"] if first == second else ["m2"])


def reaches(value: Any, path: tuple[str, ...]) -> bool:  # noqa: ANN401 - any JSON
    """Return whether the path exists in the value."""
    for element in path:
        kind, text = element[0], element[2:]
        if kind == "f":
            if not isinstance(value, dict) or text not in value:
                return False
            value = value[text]
        else:
            wanted = json.loads(text)
            found = [item for item in value or () if item == wanted or (kind == "k" and wanted.items() <= item.items())]
            if not found:
                return False
            value = found[0]
    return True


# The real server's answers


def recorded_applies() -> Iterator[tuple[str, KubeObject, KubeObject | None, dict[str, Any], Any]]:
    """Yield every recorded apply of these kinds: its configuration, the live object, and the answer."""
    for case in sorted(CASES.glob("apply/*.json")):
        if case.stem == "errors":
            continue  # requests that are refused before they are applied
        live: dict[str, KubeObject] = {}
        for step in json.loads(case.read_text(encoding="utf-8"))["steps"]:
            request, response = step.get("request"), step.get("response")
            if request is None or not isinstance(response["body"], dict):
                continue
            if not isinstance(request.get("body"), dict | None):
                continue  # not a configuration
            path, body = request["path"], response["body"]
            is_apply = "apply-patch" in (request.get("headers") or {}).get("Content-Type", "")
            if is_apply and request["body"].get("kind") == "ConfigMap" and response["status"] < 500:
                yield case.stem, request["body"], live.get(path), request["query"], response
            name = body.get("metadata", {}).get("name")
            if response["status"] < 300 and name and "dryRun" not in (request.get("query") or {}):
                live[path if request["method"] != "POST" else f"{path}/{name}"] = body


def outcome_of(config: KubeObject, live: KubeObject | None, query: dict[str, Any]) -> tuple[int, Any]:
    """Apply as recorded; return the status, and the managers or the message."""
    force = query.get("force") == "true"
    try:
        after = apply(config, live, query.get("fieldManager", ""), force=force)
    except Conflicts as conflicts:
        return 409, (str(conflicts), conflicts.causes())
    except BadApplyConfiguration as problem:
        return 400, str(problem)
    return 200, (after.get("data") or None, timeless(after))


def recorded_outcome(response: dict[str, Any]) -> tuple[int, Any]:
    body = response["body"]
    if response["status"] == 409:
        return 409, (body["message"], body["details"]["causes"])
    if response["status"] == 400:
        return 400, body["message"]
    return 200, (body.get("data"), timeless(body))


def test_recorded_applies_have_the_recorded_outcome() -> None:
    seen = 0
    for case, config, live, query, response in recorded_applies():
        seen += 1
        assert outcome_of(config, live, query) == recorded_outcome(response), case
    assert seen > 15


def timeless(value: KubeObject) -> list[str]:
    entries = [{**entry, "time": "time" in entry} for entry in value["metadata"].get("managedFields", [])]
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)
