"""Validation of replica counts in a status: non-negative, and no subset larger than the total.

Kubernetes: pkg/apis/apps/validation (ValidateDeploymentStatus and the like).
"""

from __future__ import annotations

import msgspec

from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidateUpdate, validate_metadata_update


class ReplicaCounts(msgspec.Struct, frozen=True):
    """The counts in the status of a kind."""

    #: In the order of the checks.
    count_fields: tuple[str, ...]
    #: The counts of subsets of `replicas`.
    partial_counts: tuple[str, ...] = ()
    #: The name of `readyReplicas` in messages; the available replicas are a subset of them.
    ready: str = "readyReplicas"


DEPLOYMENT = ReplicaCounts(
    (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ),
    ("updatedReplicas", "readyReplicas", "availableReplicas"),
)
REPLICA_SET = ReplicaCounts(
    (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ),
    ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
)
STATEFUL_SET = ReplicaCounts(
    (
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ),
    ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    "status.readyReplicas",
)
DAEMON_SET = ReplicaCounts(
    (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
)


def status_counts_validator(counts: ReplicaCounts, *, metadata_last: bool = False) -> ValidateUpdate:
    """Return the check of a status with these counts."""

    def check(new: Object, old: Object, problems: Problems) -> None:
        if not metadata_last:
            validate_metadata_update(new, old, problems)
        _check_counts(new, counts, problems)
        if metadata_last:
            validate_metadata_update(new, old, problems)
        before, after = (obj.get("status", {}).get("collisionCount") for obj in (old, new))
        if before is not None and (after is None or after < before):
            problems.invalid("status.collisionCount", after or 0, "cannot be decremented")

    return check


def _check_counts(value: Object, counts: ReplicaCounts, problems: Problems) -> None:
    status = value.get("status", {})
    for field in counts.count_fields:
        problems.not_negative(f"status.{field}", status.get(field, 0))
    if not counts.partial_counts:
        return
    total = status.get("replicas", 0)
    for field in counts.partial_counts:
        if (count := status.get(field, 0)) > total:
            problems.invalid(f"status.{field}", count, "cannot be greater than status.replicas")
    if (available := status.get("availableReplicas", 0)) > status.get("readyReplicas", 0):
        problems.invalid("status.availableReplicas", available, f"cannot be greater than {counts.ready}")
