"""ServiceAccounts. Kubernetes: pkg/apis/core and pkg/registry/core/serviceaccount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.printing.ages import age
from batkube.api.validation.names import subdomain_name
from batkube.api.validation.rules import ValidationRules, metadata_only, metadata_update_then
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_ENFORCE_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"

_validate_service_account_create = metadata_only(subdomain_name, True)


# Strategy


def prepare_service_account(account: dict[str, Any], *_rest: object) -> None:
    """Keep only the names of the referenced secrets."""
    if account.get("secrets"):
        account["secrets"] = [
            {"name": reference["name"]} if reference.get("name") else {} for reference in account["secrets"]
        ]


# Columns


def service_account_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ServiceAccount."""
    return [value["metadata"].get("name", ""), len(value.get("secrets") or ()), age(value, now)]


# Warnings


def service_account_warnings(account: Mapping[str, Any]) -> list[str]:
    """Return the warning about the deprecated annotation that enforces mountable secrets."""
    if _ENFORCE_MOUNTABLE_SECRETS not in (account["metadata"].get("annotations") or {}):
        return []
    return [
        f"metadata.annotations[{_ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]


def service_account_update_warnings(account: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Return the warnings of an update; an existing annotation was reported before."""
    return [] if service_account_warnings(old) else service_account_warnings(account)


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "serviceaccounts": Kind(
        prepare_create=prepare_service_account,
        prepare_update={"": prepare_service_account},
        rules=ValidationRules(_validate_service_account_create, metadata_update_then(_validate_service_account_create)),
        cells=service_account_cells,
        warnings_on_create=service_account_warnings,
        warnings_on_update={"": service_account_update_warnings},
    ),
}
