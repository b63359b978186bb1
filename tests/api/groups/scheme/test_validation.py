"""Objects with one mistake get the recorded answer of a real kube-apiserver, and so do whole recordings, if available.

`validation_answers.json` holds valid objects of every kind and, for each, changes that make it invalid with the causes
that kube-apiserver v1.34.4 reported (asked with dryRun).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.groups.object_updates import OBJECTS, TABLE, changes, filled, resource_of

from batkube.api.decoding.objects import DecodeError, decode
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.scheme import strategies, validation
from batkube.api.groups.scheme.conversion import convert_version
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Store
from batkube.kernel.instants import Instant
from conformance import CASES

RECORDED = json.loads((Path(__file__).parent / "validation_answers.json").read_text(encoding="utf-8"))
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Cause = tuple[str, str, str]


def stored_resource(resource: Resource) -> Resource:
    """The resource of a kind in its storage version."""
    versions = {"events.k8s.io/v1": ("", "v1"), "autoscaling/v1": ("autoscaling", "v2")}
    match = TABLE.resource(*versions.get(resource.api_version, (resource.group, resource.version)), resource.plural)
    assert match is not None
    return match


def prepared(resource: Resource, body: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    """Return a defaulted and prepared object, as validation receives it on creation."""
    value: dict[str, Any] = decode(copy.deepcopy(body), resource.schema).object
    meta = value.setdefault("metadata", {})
    meta.pop("namespace", None)
    if resource.namespaced:
        meta["namespace"] = namespace
    if meta.get("generateName") and not meta.get("name"):
        meta["name"] = meta["generateName"] + "6wzn4"
    meta["uid"] = "00000000-0000-4000-8000-000000000000"
    apply_defaults(resource, value)
    stored = stored_resource(resource)
    if stored is not resource:
        value = convert_version(value, resource, stored)
    strategies.prepare_create(stored, value, StrategyContext(Store(), Instant(0), "admin", ()))
    return value


def causes_of(resource: Resource, body: dict[str, Any], namespace: str = "default") -> list[Cause]:
    try:
        value = prepared(resource, body, namespace)
    except Failure as failure:  # the allocators of services reject these before validation
        causes = (failure.details or {}).get("causes", [])
        return [(cause["reason"], cause["field"], cause["message"]) for cause in causes]
    return [(error.reason, error.field, error.message) for error in validation.validate_create(resource, value)]


@pytest.mark.parametrize("name", [name for name in RECORDED["objects"] if name != "CertificateSigningRequest/csr"])
def test_a_valid_object_passes(name: str) -> None:
    body = RECORDED["objects"][name]

    assert causes_of(resource_of(body), body) == []


@pytest.mark.parametrize("answer", RECORDED["answers"], ids=lambda a: f"{a['object']}:{'.'.join(map(str, a['path']))}")
def test_an_error_is_reported_as_by_kube_apiserver(answer: dict[str, Any]) -> None:
    body = copy.deepcopy(RECORDED["objects"][answer["object"]])
    place = body
    for step in answer["path"][:-1]:
        place = place[step]
    if "value" in answer:
        place[answer["path"][-1]] = answer["value"]
    else:
        del place[answer["path"][-1]]

    causes = causes_of(resource_of(RECORDED["objects"][answer["object"]]), body)

    assert causes == [tuple(cause) for cause in answer["causes"]]


def without_uids(causes: list[Cause]) -> list[Cause]:
    return [(reason, field, UID.sub("U", message)) for reason, field, message in causes]


#: Causes that depend on other objects of the case.
_OF_OTHERS = re.compile("already allocated|label on the containing namespace")


def creations() -> Iterator[tuple[str, Resource, str, dict[str, Any], list[Cause]]]:
    """Yield every recorded creation of a built-in object that succeeded or failed in validation."""
    for path in sorted(CASES.glob("*/*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["topic"] in ("admission", "auth", "crd", "mutating-policies", "policies", "webhooks"):
            continue  # these objects are changed or rejected before validation, which is not modelled here
        for number, step in enumerate(case["steps"]):
            request, response = step.get("request", {}), step.get("response", {})
            body, parts = request.get("body"), request.get("path", "").strip("/").split("/")
            if request.get("method") != "POST" or response.get("status") not in (201, 422):
                continue
            if not isinstance(body, dict) or "$" in json.dumps(body) or request.get("query"):
                continue
            group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
            namespace = rest[1] if rest[0] == "namespaces" and len(rest) > 2 else ""
            tail = rest[2:] if namespace else rest
            resource = TABLE.resource(group, version, tail[0])
            if len(tail) == 1 and resource is not None and resource.storage and "reviews" not in tail[0]:
                causes = (response["body"].get("details") or {}).get("causes") or []
                wanted = [(c["reason"], c["field"], c["message"]) for c in causes]
                if any(_OF_OTHERS.search(message) for _, _, message in wanted):
                    continue
                expected = wanted if response["status"] == 422 else []
                yield f"{case['topic']}/{case['case']} {number}", resource, namespace, body, expected


def test_recorded_creations_have_the_recorded_causes() -> None:
    differences, count = [], 0
    for path, resource, namespace, body, expected in creations():
        if not body.get("kind") or body.get("metadata", {}).get("generateName"):
            continue  # a message may quote the generated name
        count += 1
        try:
            causes = causes_of(resource, body, namespace)
        except DecodeError:
            continue
        if without_uids(causes) != without_uids(expected):
            differences.append((path, causes, expected))

    assert count > 500
    assert differences == []


#: These are validated with fields that conversion, strategies or allocators add.
NOT_ALONE = ("Job", "CronJob", "Service", "Event", "CertificateSigningRequest")


@pytest.mark.parametrize("name", [name for name in OBJECTS if name.partition("/")[0] not in NOT_ALONE])
def test_an_unchanged_object_passes(name: str) -> None:
    value = filled(OBJECTS[name])

    assert changes(copy.deepcopy(value), value) == []
