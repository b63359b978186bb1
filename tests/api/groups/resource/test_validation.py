"""Validation of ResourceClaims (concepts/scheduling-eviction/dynamic-resource-allocation)."""

from __future__ import annotations

from tests.api.groups.creation_errors import errors, fields

CLAIM, REQUESTS = "ResourceClaim/rcm", "spec.devices.requests"


def test_a_request_is_either_exact_or_a_list_of_alternatives() -> None:
    assert errors(CLAIM) == []
    neither = errors(CLAIM, {f"{REQUESTS}.0.exactly": None})
    assert neither == [
        ("spec.devices.requests[0]", "Required value: exactly one of `exactly` or `firstAvailable` is required")
    ]
    both = {f"{REQUESTS}.1.exactly": {"deviceClassName": "c", "allocationMode": "All"}}
    assert fields(CLAIM, both) == ["spec.devices.requests[1]"]


def test_names_of_requests_are_unique_labels() -> None:
    assert "spec.devices.requests[0].name" in fields(CLAIM, {f"{REQUESTS}.0.name": "No_Name"})
    assert "spec.devices.requests[1].name" in fields(CLAIM, {f"{REQUESTS}.1.name": "a"})


def test_a_constraint_names_requests_or_their_alternatives() -> None:
    path = "spec.devices.constraints.0.requests"

    assert errors(CLAIM, {path: ["b"]}) == []
    assert fields(CLAIM, {path: ["a", "b/other"]}) == ["spec.devices.constraints[0].requests[1]"]


def test_a_claim_has_at_most_32_requests() -> None:
    request = {"exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}
    change = {"spec.devices": {"requests": [{"name": f"r{number}", **request} for number in range(32)]}}
    assert errors(CLAIM, change) == []

    change = {"spec.devices": {"requests": [{"name": f"r{number}", **request} for number in range(33)]}}
    assert fields(CLAIM, change) == ["spec.devices.requests"]


def test_all_devices_are_requested_without_a_count() -> None:
    assert fields(CLAIM, {f"{REQUESTS}.0.exactly.count": 0}) == [f"{REQUESTS}[0].exactly.count"]
    assert fields(CLAIM, {f"{REQUESTS}.0.exactly.allocationMode": "All"}) == [f"{REQUESTS}[0].exactly.count"]
