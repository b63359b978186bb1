"""Applying a patch request: from the bytes of the patch to the patched object.

The patched document must be decoded like an object from a client. If that fails, the request is rejected as an invalid
patch. The message contains the document or, for a strategic merge patch, the patch as Go prints it.

Kubernetes: apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from batkube.api.decoding.json_parser import parse_json
from batkube.api.decoding.json_syntax import ParseError
from batkube.api.decoding.json_type_names import go_json_type
from batkube.api.decoding.objects import DecodeError
from batkube.api.patches.json_patches import Json, PatchError, apply_json_patch, deep_copy, unknown_fields
from batkube.api.patches.merge_patches import apply_merge_patch
from batkube.api.patches.strategic_merge_patches import apply_strategic_patch
from batkube.api.patches.unstructured_conversion import Decode, from_unstructured
from batkube.api.requests import statuses
from batkube.api.requests.statuses import Failure
from batkube.api.validation.field_errors import invalid
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject
from batkube.text.go_format import go_value

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

#: The fields that kube-apiserver decodes first, which fails for a list.
_NOT_AN_OBJECT = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion "
    'string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)
_REJECTED = "the server rejected our request due to an error in our request"


class PatchedDocument:
    """A patched document, and the errors of strict decoding in the patch itself."""

    def __init__(self, value: Json, problems: list[str]) -> None:
        self.value = value
        self.problems = problems

    def decode(self, resource: Resource, decode: Decode) -> tuple[KubeObject, list[str]]:
        """Return the object, with all errors of strict decoding; raises a 422."""
        if not isinstance(self.value, dict):
            raise self.invalid_patch(_NOT_AN_OBJECT.format(go_json_type(self.value)))
        try:
            value, unknown = decode(self.value)
        except DecodeError as problem:
            raise self.invalid_patch(str(problem)) from problem
        if not resource.custom:
            value["kind"], value["apiVersion"] = resource.kind, resource.api_version
        return value, self.problems + sorted(unknown)

    def reject_strict_problems(self, problems: list[str]) -> None:
        """Raise a 422 if strict decoding found any errors."""
        if problems:
            raise self.invalid_patch("strict decoding error: " + ", ".join(problems))

    def invalid_patch(self, problem: str) -> Failure:
        """Return the 422; kube-apiserver omits group, kind and name in this answer."""
        error = invalid("patch", self._document_text(), problem)
        details: dict[str, Any] = {"causes": [msgspec.to_builtins(error)]}
        return Failure(422, "Invalid", f' "" is invalid: patch: {error.message}', details)

    def _document_text(self) -> str:
        return msgspec.json.encode(self.value).decode()


class _StrategicPatchedDocument(PatchedDocument):
    """A patched document that kube-apiserver converts to its Go type without going through JSON."""

    def __init__(self, value: Json, problems: list[str], patch: Json) -> None:
        super().__init__(value, problems)
        self._patch = patch

    def decode(self, resource: Resource, decode: Decode) -> tuple[KubeObject, list[str]]:
        # The Go type is fixed, so apiVersion and kind in the document do not matter.
        document = {**self.value, "kind": resource.kind, "apiVersion": resource.api_version}
        try:
            value, unknown = from_unstructured(document, resource.schema, decode)
        except DecodeError as problem:
            raise self.invalid_patch(str(problem)) from problem
        return value, self.problems + sorted(unknown)

    def _document_text(self) -> str:
        return go_value(self._patch)


def apply_patch(kind: str, live: KubeObject, body: bytes, resource: Resource, checks: bool) -> PatchedDocument:
    """Apply the patch in `body`, of the media type `kind`, to `live`; raises Failure.

    `checks`: fieldValidation is not Ignore, so the patch itself is decoded strictly as well.
    """
    try:
        return _PATCHERS[kind](live, body, resource, checks)
    except PatchError as problem:
        raise _patch_failure(problem) from problem


def _apply_json_patch(live: KubeObject, body: bytes, resource: Resource, checks: bool) -> PatchedDocument:
    patch, problems = _parse_patch(body, "error decoding patch: " if checks else "")
    value = apply_json_patch(live, patch, checks)
    if resource.custom:
        # A moved value is still part of the live object, but will be pruned and defaulted in place.
        value = deep_copy(value)
    if not checks:
        return PatchedDocument(value, [])
    return PatchedDocument(value, [f"json patch {problem}" for problem in problems] + unknown_fields(patch))


def _apply_merge_patch(live: KubeObject, body: bytes, resource: Resource, checks: bool) -> PatchedDocument:
    try:
        patch, problems = _parse_patch(body, "error decoding patch: ")
    except PatchError:
        if checks:
            raise
        raise PatchError(400, "Invalid JSON Patch") from None
    return PatchedDocument(apply_merge_patch(live, patch, checks), problems if checks else [])


def _apply_strategic_patch(live: KubeObject, body: bytes, resource: Resource, checks: bool) -> PatchedDocument:
    patch, problems = _parse_patch(body, "")
    value = apply_strategic_patch(live, patch, resource.schema)
    return _StrategicPatchedDocument(value, problems if checks else [], patch)


_PATCHERS: dict[str, Callable[[KubeObject, bytes, Resource, bool], PatchedDocument]] = {
    JSON_PATCH: _apply_json_patch,
    MERGE_PATCH: _apply_merge_patch,
    STRATEGIC_PATCH: _apply_strategic_patch,
}


def _parse_patch(body: bytes, prefix: str) -> tuple[Json, list[str]]:
    try:
        return parse_json(body)
    except ParseError as problem:
        raise PatchError(400, f"{prefix}{problem}") from problem


def _patch_failure(problem: PatchError) -> Failure:
    match problem.code:
        case 400:
            return statuses.bad_request(problem.message)
        case 413:
            return Failure(413, "RequestEntityTooLarge", f"Request entity too large: {problem.message}")
        case 422:
            return Failure(422, "Invalid", _REJECTED, {})
        case _:
            return statuses.internal_error(problem.message)
