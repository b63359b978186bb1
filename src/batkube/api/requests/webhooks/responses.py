"""Answers of webhooks as client-go and the decoders of the API server read them, and complain about them.

Kubernetes: client-go/rest/request.go (Result.Into), apimachinery/pkg/runtime/serializer/json (Serializer.Decode).
"""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.json_type_names import go_json_type
from batkube.api.decoding.objects import ParseError, parse_json, parse_yaml
from batkube.api.requests.webhooks.calls import WebhookResponse

_GO_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
#: Of what is no JSON so much is looked at.
_YAML_BYTES_MAX = 4096
_SCHEME = "pkg/runtime/scheme.go:110"


class InvalidWebhookResponse(Exception):
    """There is no answer, or none that can be read."""


def decode_review(
    reply: WebhookResponse, kind: str, group: str, version: str, versions: tuple[str, ...]
) -> dict[str, Any]:
    """Return the review that was sent back, of this kind and version. Raises InvalidWebhookResponse.

    `versions` are all those of the kind that the real server knows.
    """
    if reply.error:
        raise InvalidWebhookResponse(reply.error)
    if not reply.body:
        told = f"0-length response with status code: {reply.status} and content type: {reply.content_type}"
        raise InvalidWebhookResponse(told)
    review = _parse_body(reply.body)
    if review is None:
        review = {}
    if not isinstance(review, dict):
        raise InvalidWebhookResponse(not_an_object_message(review))
    told_version, told_kind = review.get("apiVersion") or f"{group}/{version}", review.get("kind") or kind
    if told_kind != kind or told_version not in [f"{group}/{each}" for each in versions]:
        raise InvalidWebhookResponse(
            f'no kind "{told_kind}" is registered for version "{told_version}" in scheme "{_SCHEME}"'
        )
    if told_version != f"{group}/{version}":
        other = told_version.rpartition("/")[2]
        raise InvalidWebhookResponse(f"converting ({other}.{kind}) to ({version}.{kind}): unknown conversion")
    return review


def _parse_body(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return what a body says in JSON, or else in YAML, which decoders try next."""
    try:
        return parse_json(body)[0]
    except ParseError as problem:
        try:
            return parse_yaml(body[:_YAML_BYTES_MAX])[0]
        except (ParseError, RecursionError):
            raise InvalidWebhookResponse(f"couldn't get version/kind; json parse error: {problem}") from problem


def check_field_types(response: dict[str, Any], fields: dict[str, tuple[type, str]], where: str) -> None:
    """Refuse fields of another type than Go's struct has; `fields` gives the type here and there."""
    for name, (wanted, there) in fields.items():
        value = response.get(name)
        if value is not None and not isinstance(value, wanted):
            raise InvalidWebhookResponse(_unmarshal_error(value, f"struct field {where}.{name} of type {there}"))


def not_an_object_message(value: object) -> str:
    """Say, as Go does, that something is no object at all."""
    return f"couldn't get version/kind; json parse error: {_unmarshal_error(value, f'value of type {_GO_TYPE_META}')}"


def _unmarshal_error(value: object, target: str) -> str:
    return f"json: cannot unmarshal {go_json_type(value)} into Go {target}"
