"""What custom kinds add to the verbs that all kinds share."""

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
"""What admission does to objects of any kind."""


class CustomBehaviour:
    """The Behaviour of every custom kind (see `batkube.api.requests.writes`).

    An object is prepared and judged in the version of the request, and then stored in the storage version. What that
    version does not know is lost only then, so that it can still be judged.
    """

    def __init__(self, customs: CustomKinds, admission: Admit) -> None:
        self._kinds = customs
        self._admission = admission

    def decode(self, resource: Resource, value: KubeObject) -> Decoded:
        """Return the canonical object, without defaults; what the schema does not know is left out and told."""
        return self._kinds.kind(resource).decode(value)

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Fill in the defaults of the schema."""
        self._kinds.kind(resource).set_defaults(value)

    def to_storage_version(self, write: Write, value: KubeObject) -> KubeObject:
        """Leave the object in the version of the request, in which it is judged."""
        return value

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Let admission change or refuse the object; nothing is created any more once the definition is going."""
        if old is None and self._kinds.definition(write.resource).is_terminating:
            problem = "create not allowed while custom resource definition is terminating"
            raise statuses.forbidden(write.resource, write.name, problem)
        self._admission(write, value, old)

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset what clients may not set on creation."""
        self._kinds.kind(write.resource).prepare_create(value)

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset what clients may not change, and count the generation."""
        kind, old = self._kinds.kind(write.resource), self._kinds.convert(old, write.resource)
        if write.subresource == "status":
            kind.prepare_status_update(value, old)
        else:
            kind.prepare_update(value, old)

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Judge a new object; a good one is brought into the version in which it is stored."""
        kind = self._kinds.kind(write.resource)
        problems = kind.validate(value, None, write.warnings)
        if not problems:
            write.warnings += kind.finalizer_warnings(value, None)
            self._convert_to_storage_version(write, value)
        return problems

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Judge a changed object; a good one is brought into the version in which it is stored."""
        kind, old = self._kinds.kind(write.resource), self._kinds.convert(old, write.resource)
        is_status = write.subresource == "status"
        problems = kind.validate(value, old, write.warnings, status_only=is_status)
        if not problems:
            if not is_status:
                write.warnings += kind.finalizer_warnings(value, old)
            self._convert_to_storage_version(write, value)
        return problems

    def _convert_to_storage_version(self, write: Write, value: KubeObject) -> None:
        """Convert an object, in place, as a later read will find it, and see that it can be shown in all versions."""
        self._kinds.convert_to_storage_version(value, write.resource)
        self._kinds.prefetch_served_versions(value, write.resource)
