"""The behaviour of custom kinds in create, update and patch requests."""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.custom.serving.custom_kinds import CustomKinds
from batkube.api.decoding.objects import Decoded
from batkube.api.requests import statuses
from batkube.api.requests.writes import Write
from batkube.api.validation.field_errors import FieldError
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

Admit = Callable[[Write, KubeObject, KubeObject | None], None]
"""Runs admission for an object of any kind."""


class CustomBehaviour:
    """The Behaviour of every custom kind (see `batkube.api.requests.writes`).

    An object is prepared and validated in the version of the request, and then converted to the storage version. The
    conversion may drop fields, so it must follow validation.
    """

    def __init__(self, customs: CustomKinds, admission: Admit) -> None:
        self._kinds = customs
        self._admission = admission

    def decode(self, resource: Resource, value: KubeObject) -> Decoded:
        """Return the canonical object, without defaults; drop unknown fields and report them."""
        return self._kinds.kind(resource).decode(value)

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Set the defaults of the schema."""
        self._kinds.kind(resource).set_defaults(value)

    def to_storage_version(self, write: Write, value: KubeObject) -> KubeObject:
        """Do nothing: the object stays in the request's version until it has been validated."""
        return value

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Run admission; reject creations while the definition is being deleted."""
        if old is None and self._kinds.definition(write.resource).is_terminating:
            problem = "create not allowed while custom resource definition is terminating"
            raise statuses.forbidden(write.resource, write.name, problem)
        self._admission(write, value, old)

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset fields that clients cannot set on creation."""
        self._kinds.kind(write.resource).prepare_create(value)

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset fields that clients cannot change, and increment the generation."""
        kind, old = self._kinds.kind(write.resource), self._kinds.convert(old, write.resource)
        if write.subresource == "status":
            kind.prepare_status_update(value, old)
        else:
            kind.prepare_update(value, old)

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Validate a new object; if it is valid, convert it to the storage version."""
        kind = self._kinds.kind(write.resource)
        problems = kind.validate(value, None, write.warnings)
        if not problems:
            write.warnings += kind.finalizer_warnings(value, None)
            self._convert_to_storage_version(write, value)
        return problems

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Validate a changed object; if it is valid, convert it to the storage version."""
        kind, old = self._kinds.kind(write.resource), self._kinds.convert(old, write.resource)
        is_status = write.subresource == "status"
        problems = kind.validate(value, old, write.warnings, status_only=is_status)
        if not problems:
            if not is_status:
                write.warnings += kind.finalizer_warnings(value, old)
            self._convert_to_storage_version(write, value)
        return problems

    def _convert_to_storage_version(self, write: Write, value: KubeObject) -> None:
        """Convert an object in place to the storage version, and prefetch its conversions to the served versions."""
        self._kinds.convert_to_storage_version(value, write.resource)
        self._kinds.prefetch_served_versions(value, write.resource)
