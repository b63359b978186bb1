"""TokenRequests of service accounts."""

from __future__ import annotations

import pytest
from tests.api.access.token_cluster import Cluster

from batkube.api.access.authenticator import AUDIENCE
from batkube.api.requests.statuses import Failure


def test_the_status_of_a_token_request_is_set() -> None:
    cluster = Cluster()

    answer = cluster.requests.issue({"kind": "TokenRequest"}, "d", "sa", cluster.now)

    assert answer["metadata"] == {
        "name": "sa",
        "namespace": "d",
        "uid": "u-sa",
        "creationTimestamp": "2000-01-01T00:00:00Z",
    }
    assert answer["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answer["status"]["expirationTimestamp"] == "2000-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("request_", "name", "code", "message"),
    [
        (
            {"spec": {"expirationSeconds": 5}},
            "sa",
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: may not '
            "specify a duration less than 10 minutes",
        ),
        ({}, "nope", 404, 'serviceaccounts "nope" not found'),
        (
            {"metadata": {"name": "other"}},
            "sa",
            422,
            'TokenRequest.authentication.k8s.io "sa" is invalid: metadata.name: Invalid value: "other": must match the '
            "service account name if specified",
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1"}}},
            "sa",
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "x"}}},
            "sa",
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (x) does not match the '
            "UID in record. The object might have been deleted and then recreated",
        ),
    ],
)
def test_an_invalid_token_request_is_rejected(request_: dict[str, object], name: str, code: int, message: str) -> None:
    cluster = Cluster()

    with pytest.raises(Failure) as refusal:
        cluster.requests.issue(request_, "d", name, cluster.now)

    assert (refusal.value.code, refusal.value.message) == (code, message)
