"""The ResourceClaims of a pod: named in its spec, or generated from a template."""

from __future__ import annotations

from batkube.cluster.pods.device_claims import claims_by_entry, claims_of, generated_claims, is_allocated


def test_a_claim_is_named_in_the_spec_or_generated_or_not_generated_yet() -> None:
    """The status names generated claims; an entry without a name there needs none (resourceclaim.Name upstream)."""
    entries = [
        {"name": "shared", "resourceClaimName": "gpu"},
        {"name": "own", "resourceClaimTemplateName": "template"},
        {"name": "unneeded", "resourceClaimTemplateName": "template"},
        {"name": "later", "resourceClaimTemplateName": "template"},
    ]
    statuses = [{"name": "own", "resourceClaimName": "web-own-x7k2p"}, {"name": "unneeded"}]
    pod = {"spec": {"resourceClaims": entries}, "status": {"resourceClaimStatuses": statuses}}

    assert claims_by_entry(pod) == {"shared": "gpu", "own": "web-own-x7k2p", "unneeded": "", "later": None}
    assert generated_claims(pod) == {"own": "web-own-x7k2p", "unneeded": ""}
    assert list(claims_of(pod)) == ["gpu", "web-own-x7k2p"]


def test_a_pod_without_claims_has_none() -> None:
    assert claims_by_entry({"spec": {}}) == {}
    assert list(claims_of({"spec": {}, "status": {"resourceClaimStatuses": None}})) == []


def test_a_claim_is_allocated_once_a_scheduler_has_chosen_devices() -> None:
    assert not is_allocated({"spec": {}})
    assert not is_allocated({"status": {"reservedFor": []}})
    assert is_allocated({"status": {"allocation": {"devices": {"results": []}}}})
