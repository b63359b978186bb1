"""Conversion webhooks: external programs that convert custom objects between versions.

Answers are cached. A list is converted in one request, and the object of a write is converted to all served versions
before the write is committed, so that watches can report it at once. A webhook may change labels and annotations only;
all other metadata is restored afterwards, and an object that differs only in that metadata needs no new request.

Kubernetes: apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from batkube.api.requests import statuses
from batkube.api.requests.webhooks.calls import WebhookCalls
from batkube.api.requests.webhooks.request_builder import WebhookRequestBuilder
from batkube.api.requests.webhooks.responses import (
    STATUS_FIELDS,
    InvalidWebhookResponse,
    check_field_types,
    decode_review,
)
from batkube.cluster.store import KubeObject

_GROUP = "apiextensions.k8s.io"
_KNOWN_REVIEW_VERSIONS = ("v1", "v1beta1")
#: The fields of a response with their Python and Go types.
_RESPONSE_FIELDS: dict[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "convertedObjects": (list, "[]runtime.RawExtension"),
    "result": (dict, "v1.Status"),
}
_TIMEOUT_S = 30
#: The maximum size of the cache.
_CACHE_MAX_BYTES = 32 * 1024 * 1024
_MUTABLE_METADATA = ("labels", "annotations")


class ConversionWebhooks:
    """Calls the conversion webhooks of definitions, and caches their answers."""

    def __init__(self, inquiries: WebhookCalls, clients: WebhookRequestBuilder) -> None:
        self._inquiries = inquiries
        self._clients = clients
        #: Converted objects as JSON, oldest first, by definition, version and content.
        self._cache: dict[bytes, bytes] = {}
        self._cache_bytes = 0

    def convert(self, definition: KubeObject, values: Sequence[KubeObject], api_version: str) -> list[KubeObject]:
        """Convert objects of a kind to another version; raise Failure if the webhook fails or answers wrongly."""
        self._inquiries.mark_restartable()
        keys = [_cache_key(definition, value, api_version) for value in values]
        missing = {key: value for key, value in zip(keys, values, strict=True) if key not in self._cache}
        fresh: dict[bytes, bytes] = {}
        if missing:
            answers = self._call_webhook(definition, list(missing.values()), api_version)
            for (key, value), answer in zip(missing.items(), answers, strict=True):
                _check_converted(value, answer, api_version)
                fresh[key] = msgspec.json.encode(answer)
        conversions = {**{key: self._cache[key] for key in keys if key in self._cache}, **fresh}
        self._add_to_cache(fresh)
        answered = [msgspec.json.decode(conversions[key]) for key in keys]
        return [_merge_metadata(value, answer) for value, answer in zip(values, answered, strict=True)]

    def _call_webhook(self, definition: KubeObject, values: list[KubeObject], api_version: str) -> list[Any]:
        webhook = definition["spec"]["conversion"]["webhook"]
        version = next(
            (supported for supported in webhook["conversionReviewVersions"] if supported in _KNOWN_REVIEW_VERSIONS),
            "v1",
        )
        digest = hashlib.sha256(b"".join(_cache_key(definition, value, api_version) for value in values)).digest()
        uid = str(uuid.UUID(bytes=digest[:16], version=4))
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": values}
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{_GROUP}/{version}",
            "request": request,
            # kube-apiserver sends the empty response struct along.
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        call = self._clients.build(webhook["clientConfig"], msgspec.json.encode(review), _TIMEOUT_S)
        (reply,) = self._inquiries.responses([((digest, "conversion"), call)])
        try:
            answer = decode_review(reply, "ConversionReview", _GROUP, version, _KNOWN_REVIEW_VERSIONS)
            check_field_types(answer, {"response": (dict, f"{version}.ConversionResponse")}, "ConversionReview")
            response = answer.get("response") or {}
            check_field_types(response, _RESPONSE_FIELDS, "ConversionResponse.response")
            check_field_types(response.get("result") or {}, STATUS_FIELDS, "Status.response.result")
            objects = _converted_objects(answer, uid, version)
        except (ValueError, InvalidWebhookResponse) as problem:
            raise statuses.internal_error(
                f"conversion webhook for {_group_version_kind(values[0])} failed: {problem}"
            ) from problem
        if len(objects) != len(values):
            detail = f"returned {len(objects)} objects, expected {len(values)}"
            raise statuses.internal_error(f"conversion webhook for {_group_version_kind(values[0])} {detail}")
        return objects

    def _add_to_cache(self, fresh: dict[bytes, bytes]) -> None:
        self._cache.update(fresh)
        self._cache_bytes += sum(map(len, fresh.values()))
        while self._cache_bytes > _CACHE_MAX_BYTES:
            self._cache_bytes -= len(self._cache.pop(next(iter(self._cache))))


def is_converted_by_webhook(definition: KubeObject) -> bool:
    """Return whether a webhook converts the definition's objects."""
    return (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook"


def _cache_key(definition: KubeObject, value: KubeObject, api_version: str) -> bytes:
    """Return a hash of what the answer depends on: the definition, and all of the object that a webhook can change."""
    meta, own = value["metadata"], definition["metadata"]
    identity = [
        own["uid"],
        own.get("generation"),
        api_version,
        *(meta.get(key) for key in ("name", *_MUTABLE_METADATA)),
    ]
    body = {name: part for name, part in value.items() if name != "metadata"}
    return hashlib.sha256(msgspec.json.encode([identity, body], order="sorted")).digest()


def _converted_objects(answer: dict[str, Any], uid: str, version: str) -> list[Any]:
    """Return the objects of an answer; raises ValueError if it is malformed."""
    response, kind = answer.get("response"), f"{answer.get('apiVersion', '')}, Kind={answer.get('kind', '')}"
    # kube-apiserver does not check kind and uid of v1beta1 answers.
    if version == "v1" and kind != f"{_GROUP}/v1, Kind=ConversionReview":
        raise ValueError(f"expected webhook response of {_GROUP}/v1, Kind=ConversionReview, got {kind}")
    if not isinstance(response, dict):
        raise ValueError("no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise ValueError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        default_message = f"response.result.status was '{result.get('status', '')}', not 'Success'"
        raise ValueError(result.get("message") or default_message)
    return list(response.get("convertedObjects") or ())


def _check_converted(value: KubeObject, answer: Any, api_version: str) -> None:  # noqa: ANN401 - any JSON
    """Reject an answer that is not the same object in the requested version."""
    problem, place = "", ""
    meta = answer.get("metadata") if isinstance(answer, dict) else None
    if not isinstance(meta, dict):
        problem = "metadata is missing"
    elif answer.get("apiVersion") != api_version:
        place = " at index 0"
        problem = f"invalid groupVersion (expected {api_version}, received {answer.get('apiVersion', '')})"
    elif answer.get("kind") != value["kind"]:
        place = " at index 0"
        problem = f"invalid kind (expected {value['kind']}, received {answer.get('kind', '')})"
    else:
        for field in ("name", "namespace", "uid"):
            before, after = value["metadata"].get(field, ""), meta.get(field, "")
            if before != after:
                problem = f"must have the same {field}: {before} != {after}"
                break
    if problem:
        message = f"conversion webhook for {_group_version_kind(value)} returned invalid object{place}: {problem}"
        raise statuses.internal_error(message)


def _merge_metadata(value: KubeObject, answer: KubeObject) -> KubeObject:
    """Return the answer with the object's metadata, except for the fields that a webhook can change."""
    meta = {name: part for name, part in value["metadata"].items() if name not in _MUTABLE_METADATA}
    changed = {name: answer["metadata"][name] for name in _MUTABLE_METADATA if answer["metadata"].get(name)}
    return {**answer, "metadata": {**meta, **changed}}


def _group_version_kind(value: KubeObject) -> str:
    return f"{value['apiVersion']}, Kind={value['kind']}"
