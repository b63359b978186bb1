"""Decode webhook responses, with the error messages of client-go and of the API server's decoders.

Kubernetes: client-go/rest/request.go (Result.Into), apimachinery/pkg/runtime/serializer/json (Serializer.Decode).
"""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.json_type_names import GO_TYPE_META, go_json_type
from batkube.api.decoding.objects import ParseError, parse_json, parse_yaml
from batkube.api.requests.webhooks.calls import WebhookResponse

#: How many bytes of a body that is not JSON are parsed as YAML.
_YAML_BYTES_MAX = 4096
_NO_TYPE_PREFIX = "couldn't get version/kind; json parse error: "
_SCHEME = "pkg/runtime/scheme.go:110"


#: The fields of a Status with their Python and Go types.
STATUS_FIELDS: dict[str, tuple[type, str]] = {
    "code": (int, "int32"),
    "details": (dict, "v1.StatusDetails"),
    "message": (str, "string"),
    "metadata": (dict, "v1.ListMeta"),
    "reason": (str, "v1.StatusReason"),
    "status": (str, "string"),
}


class InvalidWebhookResponse(Exception):
    """A webhook sent no response, or one that cannot be decoded."""


def decode_review(
    response: WebhookResponse, kind: str, group: str, version: str, versions: tuple[str, ...]
) -> dict[str, Any]:
    """Return the review in a response, which must be of this kind and version; raises InvalidWebhookResponse.

    `versions` are all versions of the kind that kube-apiserver knows.
    """
    if response.error:
        raise InvalidWebhookResponse(response.error)
    if not response.body:
        raise InvalidWebhookResponse(
            f"0-length response with status code: {response.status} and content type: {response.content_type}"
        )
    review = _parse_body(response.body)
    if review is None:
        review = {}
    if not isinstance(review, dict):
        raise InvalidWebhookResponse(not_an_object_message(review))
    try:
        check_field_types(review, {"apiVersion": (str, "string"), "kind": (str, "string")}, "")
    except InvalidWebhookResponse as problem:
        raise InvalidWebhookResponse(f"{_NO_TYPE_PREFIX}{problem}") from problem
    api_version, review_kind = review.get("apiVersion") or f"{group}/{version}", review.get("kind") or kind
    if review_kind != kind or api_version not in [f"{group}/{each}" for each in versions]:
        raise InvalidWebhookResponse(
            f'no kind "{review_kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
        )
    if api_version != f"{group}/{version}":
        other = api_version.rpartition("/")[2]
        raise InvalidWebhookResponse(f"converting ({other}.{kind}) to ({version}.{kind}): unknown conversion")
    return review


def _parse_body(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return the content of a JSON body, or else of a YAML body, which the decoders try next."""
    try:
        return parse_json(body)[0]
    except ParseError as problem:
        try:
            return parse_yaml(body[:_YAML_BYTES_MAX])[0]
        except (ParseError, RecursionError):
            raise InvalidWebhookResponse(f"{_NO_TYPE_PREFIX}{problem}") from problem


def check_field_types(response: dict[str, Any], fields: dict[str, tuple[type, str]], where: str) -> None:
    """Raise InvalidWebhookResponse for a field that Go could not unmarshal; `fields` gives Python and Go types."""
    for name, (python_type, go_type) in fields.items():
        value = response.get(name)
        if value is not None and not _is_of_type(value, python_type):
            raise InvalidWebhookResponse(_unmarshal_error(value, f"struct field {where}.{name} of type {go_type}"))


def _is_of_type(value: object, python_type: type) -> bool:
    """Return whether Go could unmarshal a value; integers are of 32 bits."""
    if python_type is int:
        return type(value) is int and -(2**31) <= value < 2**31
    return isinstance(value, python_type)


def not_an_object_message(value: object) -> str:
    """Return Go's error for a document that is not an object."""
    return f"{_NO_TYPE_PREFIX}{_unmarshal_error(value, f'value of type {GO_TYPE_META}')}"


def _unmarshal_error(value: object, target: str) -> str:
    # Go shows a number only if its type can be right: one that is out of range, or not whole.
    number = f" {value}" if target.endswith("int32") and type(value) in (int, float) else ""
    return f"json: cannot unmarshal {go_json_type(value)}{number} into Go {target}"
