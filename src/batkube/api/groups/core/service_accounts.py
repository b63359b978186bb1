"""Service accounts. Kubernetes: pkg/apis/core and pkg/registry/core/serviceaccount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind import Kind
from batkube.api.printing.ages import age
from batkube.api.validation.names import subdomain_name
from batkube.api.validation.rules import Rules, metadata_only, updated_then
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_ENFORCE = "kubernetes.io/enforce-mountable-secrets"

_service_account = metadata_only(subdomain_name, True)


# Strategy


def clean_service_account(account: dict[str, Any], *_rest: object) -> None:
    """Keep only the names of the secrets that are listed."""
    if account.get("secrets"):
        account["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in account["secrets"]]


# Columns


def service_account_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ServiceAccount."""
    return [value["metadata"].get("name", ""), len(value.get("secrets") or ()), age(value, now)]


# Warnings


def of_service_account(account: Mapping[str, Any]) -> list[str]:
    """The annotation that limits which secrets may be mounted is going away."""
    if _ENFORCE not in (account["metadata"].get("annotations") or {}):
        return []
    return [
        f"metadata.annotations[{_ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
        "mounted secrets"
    ]


def of_changed_service_account(account: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Who keeps the annotation was told before."""
    return [] if of_service_account(old) else of_service_account(account)


#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "serviceaccounts": Kind(
        prepare=clean_service_account,
        prepare_update={"": clean_service_account},
        rules=Rules(_service_account, updated_then(_service_account)),
        cells=service_account_cells,
        warn=of_service_account,
        warn_update={"": of_changed_service_account},
    ),
}
