"""Strategy of CertificateSigningRequests."""

from __future__ import annotations

from tests.api.groups.prepared_objects import created, made


def test_a_signing_request_records_its_creator() -> None:
    spec = {"request": "", "signerName": "a.b/c", "username": "somebody"}

    request = created(made("CertificateSigningRequest", "certificates.k8s.io/v1", spec=spec))

    assert (request["spec"]["username"], request["spec"]["groups"]) == ("me", ["us"])
