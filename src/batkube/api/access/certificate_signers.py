"""Authorize the approval and signing of CertificateSigningRequests.

Write permission for the subresource is not enough: approval requires the verb `approve`, and signing the verb `sign`,
on the signer that the request names or on all signers of its domain. A request for a client certificate of group
`system:masters` is forbidden (Kubernetes: plugin/pkg/admission/certificates/{approval,signing,subjectrestriction},
pkg/certauthorization).
"""

from __future__ import annotations

import base64

from batkube.api.access.rbac_authorizer import Attributes, Authorizer
from batkube.api.requests.statuses import Failure, forbidden
from batkube.api.requests.users import MASTERS
from batkube.api.requests.writes import Write
from batkube.cluster.store import KubeObject
from batkube.text.go_format import go_quote

CERTIFICATE_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_SIGNED_FIELDS = ("certificate", "conditions")


def authorize_certificate_request(
    authorizer: Authorizer, write: Write, value: KubeObject, old: KubeObject | None
) -> None:
    """Raise a 403 unless the user may create, approve or sign the certificate request; `old` is None for a create."""
    if old is None:
        if value["spec"].get("signerName") == _CLIENT_SIGNER and MASTERS in _requested_groups(write, value):
            raise _forbidden_error(write, f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
        return
    verb = _required_verb(write.subresource, value.get("status") or {}, old.get("status") or {})
    signer = old["spec"]["signerName"]  # the stored one, whatever the update says
    if verb and not _is_permitted(authorizer, write, verb, signer):
        raise _forbidden_error(write, f"user not permitted to {verb} requests with signerName {go_quote(signer)}")


def _required_verb(subresource: str, status: KubeObject, before: KubeObject) -> str:
    """Return the verb on the signer that an update requires, "" for none."""
    if subresource == "approval":
        return "approve"
    is_signed = any((status.get(part) or None) != (before.get(part) or None) for part in _SIGNED_FIELDS)
    return "sign" if subresource == "status" and is_signed else ""


def _is_permitted(authorizer: Authorizer, write: Write, verb: str, signer: str) -> bool:
    names = (signer, f"{signer.partition('/')[0]}/*")
    checks = [Attributes(verb, write.resource.group, "*", "signers", name=name) for name in names]
    return any(authorizer.authorize(write.user, attributes).allowed for attributes in checks)


def _requested_groups(write: Write, value: KubeObject) -> list[str | bytes]:
    """Return the groups (organizations) in the subject of the requested certificate."""
    from cryptography import x509

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(value["spec"]["request"]))
    except ValueError as problem:
        raise _forbidden_error(write, f"failed to parse CSR: {problem}") from problem
    return [part.value for part in request.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)]


def _forbidden_error(write: Write, problem: str) -> Failure:
    return forbidden(write.resource, write.name, problem)
