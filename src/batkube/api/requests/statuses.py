"""Failures of requests, which are answered as Status objects with reason, code, details and causes.

The constructors correspond to those of Kubernetes: apimachinery/pkg/api/errors/errors.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batkube.api.validation.field_errors import FieldError
from batkube.cluster.kinds import Resource


class Failure(Exception):
    """A request failed; carries the Status to respond with."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        #: List metadata; an expired continue token is answered with a new one here.
        self.metadata = metadata or {}
        #: Headers of the response: warnings issued before the failure.
        self.headers: tuple[tuple[str, str], ...] = ()

    def status(self) -> dict[str, Any]:
        """Return the Status object."""
        value: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            value["reason"] = self.reason
        if self.details is not None:
            value["details"] = self.details
        value["code"] = self.code
        return value


def _resource_details(resource: Resource, name: str = "") -> dict[str, Any]:
    """Return the details that identify an object by its resource."""
    details: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    return {**details, "kind": resource.plural}


def bad_request(message: str) -> Failure:
    """Return the 400 of a malformed request."""
    return Failure(400, "BadRequest", message)


def not_found(resource: Resource, name: str) -> Failure:
    """Return the 404 of an object that does not exist."""
    return Failure(404, "NotFound", f'{resource.group_resource} "{name}" not found', _resource_details(resource, name))


def already_exists(resource: Resource, name: str, *, going: bool = False) -> Failure:
    """Return the 409 of an object that already exists; `going` if it is being deleted."""
    message = f'{resource.group_resource} "{name}" already exists'
    return Failure(
        409,
        "AlreadyExists",
        f"object is being deleted: {message}" if going else message,
        _resource_details(resource, name),
    )


def name_taken(resource: Resource, name: str) -> Failure:
    """Return the 409 of a generated name that is already taken (NewGenerateNameConflict)."""
    problem = "already exists, the server was not able to generate a unique name for the object"
    details = {**_resource_details(resource, name), "retryAfterSeconds": 1}
    return Failure(409, "AlreadyExists", f'{resource.group_resource} "{name}" {problem}', details)


def conflict(resource: Resource, name: str, problem: str) -> Failure:
    """Return the 409 of an update conflict or a failed precondition."""
    message = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {problem}'
    return Failure(409, "Conflict", message, _resource_details(resource, name))


def forbidden(resource: Resource, name: str, problem: str) -> Failure:
    """Return the 403 of a request that admission or a registry rejects."""
    what = f'{resource.group_resource} "{name}"' if name else resource.group_resource
    return Failure(403, "Forbidden", f"{what} is forbidden: {problem}", _resource_details(resource, name))


def invalid(resource: Resource, name: str, errors: Sequence[FieldError], *, by_resource: bool = False) -> Failure:
    """Return the 422 of an invalid object. `by_resource` names the resource, as kube-apiserver does in some places."""
    return invalid_kind(resource.group, resource.plural if by_resource else resource.kind, name, errors)


def invalid_kind(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Failure:
    """Return the 422 of an invalid value whose kind need not be a resource."""
    # Every problem is a cause, but the message has no duplicates (Kubernetes: field.ErrorList.ToAggregate).
    messages = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    problem = messages[0] if len(messages) == 1 else "[" + ", ".join(messages) + "]"
    what = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": error.reason, "message": error.message, "field": error.field} for error in errors]
    return Failure(422, "Invalid", f'{what} "{name}" is invalid: {problem}', details)


def internal(problem: str) -> Failure:
    """Return the 500 of an error in the server or in a webhook (NewInternalError)."""
    return Failure(500, "InternalError", f"Internal error occurred: {problem}", {"causes": [{"message": problem}]})


def internal_error(message: str) -> Failure:
    """Return the 500 for a plain Go error, which has no reason."""
    return Failure(500, "", message)
