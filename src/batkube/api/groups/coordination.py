"""Leases and LeaseCandidates. Kubernetes: pkg/apis/coordination and pkg/registry/coordination."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import CONDITIONAL_UPSERT
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_metadata, check_metadata_update
from batkube.api.validation.names import ErrorMessages, config_key, qualified_name, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant
from batkube.kernel.numbers import parse_int

_OLDEST = "OldestEmulationVersion"
_is_version = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]+)?").fullmatch


# Validation


def _check_lease_spec(value: Object, problems: Problems) -> None:
    spec: Mapping[str, Any] = value.get("spec", {})
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        problems.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None:
        problems.not_negative("spec.leaseTransitions", transitions)
    strategy = spec.get("strategy")
    if strategy is not None:
        _check_strategy(strategy, problems)
    if spec.get("preferredHolder") and not strategy:
        problems.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")


def _check_strategy(strategy: str, problems: Problems) -> None:
    if "/" in strategy:
        problems.all_invalid("spec.strategy.strategy", strategy, qualified_name(strategy))
    elif strategy != _OLDEST:
        problems.not_supported("spec.strategy.strategy", strategy, (_OLDEST,))


def _validate_lease(value: Object, problems: Problems) -> None:
    check_metadata(value["metadata"], subdomain_name, True, problems)
    _check_lease_spec(value, problems)


def _validate_lease_update(new: Object, old: Object, problems: Problems) -> None:
    check_metadata_update(new["metadata"], old["metadata"], problems)
    _check_lease_spec(new, problems)


def _check_candidate_spec(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    emulated, binary, strategy = (spec.get(field, "") for field in ("emulationVersion", "binaryVersion", "strategy"))
    if not spec.get("leaseName"):
        problems.required("spec.leaseName")
    if emulated and not _is_version(emulated):
        problems.invalid("spec.emulationVersion", emulated, "must be a valid semantic version")
    if not binary:
        problems.required("spec.binaryVersion")
    elif not _is_version(binary):
        problems.invalid("spec.binaryVersion", binary, "must be a valid semantic version")
    if emulated and binary and _version_order(binary) < _version_order(emulated):
        problems.invalid("spec.binaryVersion", binary, "must be greater than or equal to `emulationVersion`")
    if not strategy:
        problems.required("spec.strategy")
        return
    if strategy == _OLDEST and _version_order(emulated) == (0, 0, 0):
        problems.required("spec.emulationVersion", f"must be specified when `strategy` is '{_OLDEST}'")
    _check_strategy(strategy, problems)


def _validate_candidate(value: Object, problems: Problems) -> None:
    check_metadata(value["metadata"], _candidate_name, True, problems)
    _check_candidate_spec(value, problems)


def _validate_candidate_update(new: Object, old: Object, problems: Problems) -> None:
    check_metadata_update(new["metadata"], old["metadata"], problems)
    _check_candidate_spec(new, problems)
    problems.unchanged("spec.leaseName", new["spec"].get("leaseName"), old["spec"].get("leaseName"))


def _candidate_name(name: str, prefix: bool) -> ErrorMessages:
    return config_key(name)


def _version_order(version: str) -> tuple[int, int, int]:
    match = _is_version(version)
    first, second, third = (parse_int(part) or 0 for part in match.groups()) if match else (0, 0, 0)
    return first, second, third


# Columns


def lease_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Lease."""
    return [value["metadata"].get("name", ""), value.get("spec", {}).get("holderIdentity", ""), age(value, now)]


def lease_candidate_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a LeaseCandidate."""
    spec = value.get("spec", {})
    fields = (spec.get(field, "") for field in ("leaseName", "binaryVersion", "emulationVersion"))
    return [value["metadata"].get("name", ""), *fields, age(value, now)]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "leasecandidates.coordination.k8s.io": Kind(
        rules=ValidationRules(_validate_candidate, _validate_candidate_update),
        cells=lease_candidate_cells,
    ),
    "leases.coordination.k8s.io": Kind(
        strategy=msgspec.structs.replace(
            CONDITIONAL_UPSERT, disabled_fields=(("spec", "strategy"), ("spec", "preferredHolder"))
        ),
        rules=ValidationRules(_validate_lease, _validate_lease_update),
        cells=lease_cells,
    ),
}
