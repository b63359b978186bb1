"""Strategic merge patch: properties, directives, and kube-apiserver's errors for invalid patches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.patches.json_patches import PatchError
from batkube.api.patches.strategic_merge_patches import apply_strategic_patch
from batkube.api.patches.unstructured_conversion import conversion_problem
from batkube.cluster.kinds import KindTable
from batkube.cluster.schemas import Schema

KINDS = KindTable.builtin()


def schema_of(group: str, plural: str) -> Schema:
    resource = KINDS.resource(group, "v1", plural)
    assert resource is not None
    return resource.schema


POD = schema_of("", "pods")
CONFIG_MAP = schema_of("", "configmaps")
DEPLOYMENT = schema_of("apps", "deployments")


def pod(**status: object) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "labels": {"x": "1"}, "finalizers": ["f/1", "f/2"]},
        "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]},
        "status": status,
    }


CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("cde")},
        optional={"image": st.sampled_from("ij"), "args": st.lists(st.sampled_from("xy"), max_size=2)},
    ),
    max_size=3,
    unique_by=lambda container: container["name"],
)
PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.none() | st.dictionaries(st.sampled_from("xyz"), st.none() | st.just("2"), max_size=2),
                "finalizers": st.lists(st.sampled_from(["f/1", "f/2", "f/3"]), max_size=3, unique=True),
                "$deleteFromPrimitiveList/finalizers": st.just(["f/2"]),
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": CONTAINERS | st.just([{"name": "c", "$patch": "delete"}]),
                "nodeName": st.none() | st.just("n"),
            },
        ),
    },
)


def settled(value: object) -> object:
    """Remove nulls, as decoding does."""
    if isinstance(value, dict):
        return {key: settled(item) for key, item in value.items() if item is not None}
    return [settled(item) for item in value] if isinstance(value, list) else value


@given(PATCHES)
def test_a_patch_is_idempotent_and_modifies_nothing_in_place(patch: dict[str, Any]) -> None:
    value, before = pod(), copy.deepcopy((pod(), patch))

    once = apply_strategic_patch(value, patch, POD)

    adds_and_deletes = "$deleteFromPrimitiveList/finalizers" in patch.get("metadata", {}) and "f/2" in patch[
        "metadata"
    ].get("finalizers", [])
    assert adds_and_deletes or settled(apply_strategic_patch(once, patch, POD)) == settled(once)
    assert (value, patch) == before


@given(CONTAINERS)
def test_containers_follow_the_order_of_the_patch_and_none_is_lost(containers: list[dict[str, Any]]) -> None:
    merged = apply_strategic_patch(pod(), {"spec": {"containers": containers}}, POD)["spec"]["containers"]

    names = [container["name"] for container in merged]
    patched = [container["name"] for container in containers]
    assert sorted(names) == sorted({"c", "d", *patched})
    assert [name for name in names if name in patched] == patched
    others = [name for name in names if name not in patched]
    assert others == [name for name in ("c", "d") if name in others]


def test_unchanged_parts_are_shared_with_the_old_object() -> None:
    value = pod(conditions=[{"type": "Ready", "status": "False"}])

    patched = apply_strategic_patch(value, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, POD)

    assert patched["spec"] is value["spec"]
    assert patched["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
    assert value["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def test_the_scheduler_reports_a_condition() -> None:
    """The patch is the one that kube-scheduler sends for an unschedulable pod."""
    value = pod(phase="Pending", conditions=[{"type": "Ready", "status": "False"}])
    patch = {
        "metadata": {"uid": "u"},
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }

    patched = apply_strategic_patch(value, patch, POD)

    assert patched["status"]["conditions"] == [
        {"type": "Ready", "status": "False"},
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
    ]


@pytest.mark.parametrize(
    ("patch", "containers"),
    [
        ([{"name": "c", "image": "new"}], [{"name": "c", "image": "new"}, {"name": "d", "image": "j"}]),
        ([{"name": "e"}], [{"name": "e"}, {"name": "c", "image": "i"}, {"name": "d", "image": "j"}]),
        ([{"name": "c", "image": None}], [{"name": "c"}, {"name": "d", "image": "j"}]),
        ([{"name": "c", "$patch": "delete"}], [{"name": "d", "image": "j"}]),
        ([{"name": "nope", "$patch": "delete"}], [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]),
        ([{"$patch": "replace"}, {"name": "e"}], [{"name": "e"}]),
        ([{"$patch": "replace"}], []),
        (None, None),
    ],
)
def test_lists_merge_by_their_key(patch: object, containers: object) -> None:
    assert apply_strategic_patch(pod(), {"spec": {"containers": patch}}, POD)["spec"].get("containers") == containers


@pytest.mark.parametrize(
    ("patch", "finalizers"),
    [
        ({"finalizers": ["f/3"]}, ["f/3", "f/1", "f/2"]),
        ({"finalizers": ["f/2", "f/3"]}, ["f/1", "f/2", "f/3"]),
        ({"$deleteFromPrimitiveList/finalizers": ["f/1", "f/9"]}, ["f/2"]),
        ({"$setElementOrder/finalizers": ["f/2", "f/1"]}, ["f/2", "f/1"]),
        (
            {"finalizers": ["f/3"], "$setElementOrder/finalizers": ["f/2", "f/3", "f/1"]},
            ["f/2", "f/3", "f/1"],
        ),
    ],
)
def test_lists_of_strings_merge_as_ordered_sets(patch: dict[str, Any], finalizers: list[str]) -> None:
    assert apply_strategic_patch(pod(), {"metadata": patch}, POD)["metadata"]["finalizers"] == finalizers


def test_only_retained_keys_are_kept() -> None:
    old = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

    assert apply_strategic_patch(old, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ({"data": {"$patch": "replace", "z": "1"}}, {"data": {"z": "1"}}),
        ({"data": {"$patch": "delete"}}, {"data": {}}),
        ({"data": {"k": None, "n": "1"}}, {"data": {"n": "1"}}),
        ({"metadata": {"finalizers": {"$patch": "bogus"}}}, {"data": {"k": "v"}, "metadata": {}}),
        ({"bogus": {"a": None, "b": {"$patch": "delete"}}}, {"data": {"k": "v"}, "bogus": {}}),
        ({"$patch": "replace", "data": {}}, {"data": {}}),
        (None, {"data": {"k": "v"}}),
    ],
)
def test_directives_act_on_structs(patch: object, result: dict[str, Any]) -> None:
    assert apply_strategic_patch({"data": {"k": "v"}}, patch, CONFIG_MAP) == result


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"metadata": {"labels": {"$patch": "bogus"}}}, 500, "unknown patch type: bogus in map: map[$patch:bogus]"),
        (
            {"spec": {"containers": [{"image": "x"}]}},
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": [{"name": "c", "$patch": "merge"}]}},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"spec": {"containers": ["c"]}},
            500,
            "list element types are not identical: [[map[image:i name:c] map[image:j name:d]] [c]]",
        ),
        (
            {"spec": {"containers": [None]}},
            500,
            "list element types are not identical: [[map[image:i name:c] map[image:j name:d]] [<nil>]]",
        ),
        ({"spec": {"hostAliases": [["c"]]}}, 422, "lists of lists are not supported"),
        ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": [], "nodeName": "n"}}, 400, "invalid patch format of retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveList": []}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "d"}], "containers": [{"name": "c"}]}},
            500,
            "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:d]]\n",
        ),
        ({"spec": {"$setElementOrder/containers": "x"}}, 500, "expected a []interface {}, but received a string"),
        (
            {"spec": {"$setElementOrder/bogus": ["x"]}},
            500,
            'unable to find api field in struct PodSpec for the json field "bogus"',
        ),
        ([], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
)
def test_an_invalid_patch_is_rejected(patch: object, code: int, message: str) -> None:
    value = pod()
    value["spec"]["hostAliases"] = []

    with pytest.raises(PatchError) as refusal:
        apply_strategic_patch(value, patch, POD)

    assert (refusal.value.code, refusal.value.message) == (code, message)


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        ({"data": {"k": 5}}, CONFIG_MAP, "cannot convert int64 to string"),
        ({"data": "x"}, CONFIG_MAP, "cannot restore map from string"),
        ({"metadata": {"finalizers": "x"}}, CONFIG_MAP, "cannot restore slice from string"),
        ({"spec": 5}, POD, "cannot restore struct from: int64"),
        ({"spec": {"priority": "x"}}, POD, "unrecognized type: int32"),
        ({"spec": {"priority": 1.5}}, POD, "cannot convert float64 to int32"),
        ({"status": {"phase": 1}}, POD, "cannot convert int64 to v1.PodPhase"),
        ({"spec": {"priority": 1, "nodeName": None}}, POD, None),
        ({"spec": {"priority": 1.0}}, POD, None),
        (
            {"metadata": {"creationTimestamp": 5}},
            POD,
            "json: cannot unmarshal number into Go value of type string",
        ),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            DEPLOYMENT,
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ],
)
def test_type_errors_equal_those_of_go(value: dict[str, Any], schema: Schema, problem: str | None) -> None:
    assert conversion_problem(value, schema) == problem
