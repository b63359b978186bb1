"""A custom kind in one version: decoding, pruning, defaulting, strategy and validation of its objects.

Kubernetes: apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy,validator}.go and
pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

import copy
from typing import Any

from batkube.api.custom.instances.cel_rules import RuleSet
from batkube.api.custom.instances.defaults import fill_defaults
from batkube.api.custom.instances.embedded_objects import decode_embedded, has_embedded_objects, validate_embedded
from batkube.api.custom.instances.list_types import has_list_types, validate_list_types
from batkube.api.custom.instances.printer_columns import custom_printer
from batkube.api.custom.instances.pruning import drop_nulls, prune
from batkube.api.custom.instances.scale_validation import (
    read_scale_paths,
    validate_scale_status,
    validate_spec_replicas,
)
from batkube.api.custom.instances.value_validation import NO_FIELD, validate_value
from batkube.api.custom.schemas.structural import StructuralSchema
from batkube.api.decoding.objects import Decoded, decode
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.metadata import check_common_update, check_metadata, check_metadata_update
from batkube.api.validation.names import qualified_name, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject

#: Errors of these types skip the CEL rules (hasBlockingErr).
_BLOCKING_REASONS = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
_RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_STANDARD_FINALIZERS = frozenset(("orphan", "foregroundDeletion", "kubernetes"))


class CustomKind:
    """A custom kind in one served version."""

    def __init__(
        self,
        resource: Resource,
        schemas: dict[str, StructuralSchema | None],
        metadata: Schema,
        version: dict[str, Any],
        deprecation: str,
        *,
        schema_is_original: bool,
    ) -> None:
        self.resource = resource
        #: The schema of each version of the kind; None for a version without one.
        self._schemas = schemas
        self._metadata = metadata
        self.schema = schemas[resource.version]
        subresources = version.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        scale = subresources.get("scale")
        #: The paths of the replicas, if the kind has the subresource `scale`.
        self.scale_paths = read_scale_paths(scale) if scale is not None else None
        #: Whether all stored objects were written with the current schema.
        self.schema_is_original = schema_is_original
        self.is_served = version.get("served") is True
        #: The warnings for clients if the version is deprecated.
        self.deprecation_warning = deprecation
        self.printer = custom_printer(version.get("additionalPrinterColumns"))
        #: The raw schema, for OpenAPI documents.
        self.raw_schema: dict[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self._has_embedded = self.schema is not None and has_embedded_objects(self.schema)
        self._has_list_types = self.schema is not None and has_list_types(self.schema)
        self.rules = RuleSet(self.schema) if self.schema is not None else None

    # Decoding

    def decode(self, value: KubeObject) -> Decoded:
        """Convert a client's object to canonical form in place: decode metadata, remove unknown fields and nulls."""
        unknown: list[str] = []
        if "metadata" in value:
            metadata = decode(value["metadata"], self._metadata)
            value["metadata"] = metadata.object
            unknown += [text.replace('field "', 'field "metadata.', 1) for text in metadata.strict_errors]
        unknown += [f'unknown field "{path}"' for path in self.prune_and_default(value, defaults=False)]
        return Decoded(value, unknown)

    def prune_and_default(self, value: KubeObject, *, defaults: bool = True) -> list[str]:
        """Prune and default an object of this kind in place; return the paths of unknown fields.

        The schema is selected by the object's apiVersion; in an unknown version, every field is unknown.
        """
        group, _, version = value["apiVersion"].rpartition("/")
        if group != self.resource.group or value["kind"] != self.resource.kind:
            return []
        schema = self._schemas.get(version)
        unknown = prune(value, schema)
        drop_nulls(value, schema)
        if self._has_embedded:
            unknown += decode_embedded(value, schema, self._metadata)
        if defaults:
            fill_defaults(value, schema)
        return unknown

    def set_defaults(self, value: KubeObject) -> None:
        """Set the defaults of the object's version."""
        fill_defaults(value, self._schemas.get(value["apiVersion"].rpartition("/")[2]))

    def from_storage(self, value: KubeObject, stored: CustomKind) -> KubeObject:
        """Convert a stored object to this version; return the same object if nothing changes.

        It gets the defaults that were added to the schema since it was written, and loses the fields that were removed.
        An object written in another version has the defaults of its storage version.
        """
        fresh = stored.with_current_schema(value)
        return fresh if stored is self else self.change_version(fresh)

    def with_current_schema(self, value: KubeObject) -> KubeObject:
        """Return a stored object pruned and defaulted with the current schema."""
        if value.get("apiVersion") == self.resource.api_version and self.schema_is_original:
            return value
        fresh = copy.deepcopy(value)
        fresh["apiVersion"] = self.resource.api_version
        self.prune_and_default(fresh)
        return fresh

    def change_version(self, value: KubeObject) -> KubeObject:
        """Convert an object of another version to this one; return the same object if it already has this version."""
        if value.get("apiVersion") == self.resource.api_version:
            return value
        value = copy.deepcopy(value)
        value["apiVersion"] = self.resource.api_version
        self.prune_and_default(value, defaults=False)
        return value

    # Preparation

    def prepare_create(self, value: KubeObject) -> None:
        """Reset the status, if it is a subresource."""
        if self.has_status:
            value.pop("status", None)
        value["metadata"]["generation"] = 1

    def prepare_update(self, value: KubeObject, old: KubeObject) -> None:
        """Keep the old status, if it is a subresource, and increment the generation on changes outside metadata."""
        if self.has_status:
            if "status" in old:
                value["status"] = old["status"]
            else:
                value.pop("status", None)
        if _without_metadata(value) != _without_metadata(old):
            value["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status_update(self, value: KubeObject, old: KubeObject) -> None:
        """Keep everything but the status and its managedFields from the old object."""
        managed, has_status, status = value["metadata"].get("managedFields"), "status" in value, value.get("status")
        value.clear()
        value.update(old)
        value["metadata"] = dict(old["metadata"])
        if managed:
            value["metadata"]["managedFields"] = managed
        if has_status:
            value["status"] = status
        else:
            value.pop("status", None)

    # Validation

    def validate(
        self, value: KubeObject, old: KubeObject | None, warnings: list[str], *, status_only: bool = False
    ) -> list[FieldError]:
        """Validate an object on creation (`old` is None) or update; ratcheted errors become warnings."""
        problems = Problems()
        if old is not None:
            check_common_update(value["metadata"], old["metadata"], self.resource.namespaced, problems)
        wrong_type = self._validate_type(value)
        if wrong_type:
            problems += wrong_type
            return problems
        if old is None:
            check_metadata(value["metadata"], subdomain_name, self.resource.namespaced, problems)
        else:
            check_metadata_update(value["metadata"], old["metadata"], problems)
        if status_only:
            problems += self._validate_status(value, old)
        else:
            problems += self._validate_object(value, old)
        problems += self._validate_lists(value, old)
        if self.rules is not None and self.rules.has_rules:
            if any(problem.reason in _BLOCKING_REASONS for problem in problems):
                problems.append(field_errors.invalid(NO_FIELD, None, _RULES_NOT_CHECKED))
            else:
                problems += self.rules.validate(value, old, warnings=warnings)
        return problems

    def _validate_type(self, value: KubeObject) -> list[FieldError]:
        type_meta = (("kind", self.resource.kind), ("apiVersion", self.resource.api_version))
        return [
            field_errors.invalid(name, value.get(name, ""), f"must be {expected}")
            for name, expected in type_meta
            if value.get(name, "") != expected
        ]

    def _validate_object(self, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        errors: list[FieldError] = []
        if self.schema is not None:
            errors = validate_value(self.schema, value) if old is None else validate_value(self.schema, value, old=old)
        if self.scale_paths is not None:
            errors += validate_spec_replicas(value, self.scale_paths) + validate_scale_status(value, self.scale_paths)
        if self._has_embedded:
            errors += validate_embedded(value, self.schema)
        return errors

    def _validate_status(self, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        errors: list[FieldError] = []
        schema = self.schema.properties.get("status") if self.schema is not None else None
        if schema is not None and "status" in value:
            if old is not None and "status" in old:
                errors = validate_value(schema, value["status"], "status", old["status"])
            else:
                errors = validate_value(schema, value["status"], "status")
        if self.scale_paths is not None:
            errors += validate_scale_status(value, self.scale_paths)
        return errors

    def _validate_lists(self, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        if self.schema is None or not self._has_list_types:
            return []
        errors = validate_list_types(self.schema, value)
        if errors and old is not None and validate_list_types(self.schema, old):
            return []
        return errors

    @staticmethod
    def finalizer_warnings(value: KubeObject, old: KubeObject | None) -> list[str]:
        """Return the warnings for newly added finalizers with unusual names."""
        before = old["metadata"].get("finalizers", ()) if old is not None else ()
        added = sorted({name for name in value["metadata"].get("finalizers", ()) if name not in before})
        return [warning for name in added for warning in _finalizer_warnings(name)]


def _without_metadata(value: KubeObject) -> KubeObject:
    return {key: part for key, part in value.items() if key != "metadata"}


def _finalizer_warnings(name: str) -> list[str]:
    prefix = f'metadata.finalizers: "{name}": '
    warnings = [prefix + problem for problem in qualified_name(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in name else ""
        warnings.append(
            f"{prefix}prefer a domain-qualified finalizer name{path} "
            "to avoid accidental conflicts with other finalizer writers"
        )
    return warnings
