"""The validation rules of a kind: for create, update and status updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from batkube.api.validation.metadata import check_built_in_metadata, check_built_in_metadata_update
from batkube.api.validation.names import NameRule
from batkube.api.validation.problems import Problems

Object = Mapping[str, Any]
ValidateCreate = Callable[[Object, Problems], None]
ValidateUpdate = Callable[[Object, Object, Problems], None]


def validate_metadata_update(new: Object, old: Object, problems: Problems) -> None:
    """Check an update of the metadata only; many kinds have no further checks."""
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)


def no_further_checks(new: Object, old: Object, problems: Problems) -> None:
    """Check nothing: the checks of every update are sufficient."""


class ValidationRules(msgspec.Struct, frozen=True):
    """The checks of one kind, in Kubernetes the Validate functions of its registry strategy."""

    create: ValidateCreate
    update: ValidateUpdate = validate_metadata_update
    status: ValidateUpdate = validate_metadata_update
    #: The subresources with rules of their own.
    subresources: dict[str, ValidateUpdate] = {}
    #: Whether `create` checks the metadata, as that of nearly all kinds does.
    covers_metadata: bool = True


def metadata_only(rule: NameRule, namespaced: bool) -> ValidateCreate:
    """Return the check of a kind whose metadata alone is validated."""

    def check(value: Object, problems: Problems) -> None:
        check_built_in_metadata(value["metadata"], rule, namespaced, problems)

    return check


def with_metadata(rule: NameRule, namespaced: bool, check: ValidateCreate) -> ValidateCreate:
    """Return a check of the metadata followed by `check`."""

    def both(value: Object, problems: Problems) -> None:
        check_built_in_metadata(value["metadata"], rule, namespaced, problems)
        check(value, problems)

    return both


def metadata_update_then(check: ValidateCreate) -> ValidateUpdate:
    """Return a check of the metadata update followed by the create check of the new object."""

    def both(new: Object, old: Object, problems: Problems) -> None:
        check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
        check(new, problems)

    return both


def create_then_update(create: ValidateCreate, update: ValidateUpdate) -> ValidateUpdate:
    """Return the create check of the new object followed by the update check."""

    def both(new: Object, old: Object, problems: Problems) -> None:
        create(new, problems)
        update(new, old, problems)

    return both
