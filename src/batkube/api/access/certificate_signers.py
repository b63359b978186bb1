"""Requests for certificates: who may approve or sign them is told by rights to their signers.

A right to the sub-resource is not enough; approving takes `approve`, signing takes `sign` on the signer that the
request names, or on all of its domain. And nobody asks for a certificate of the masters (Kubernetes:
plugin/pkg/admission/certificates/{approval,signing,subjectrestriction}, pkg/certauthorization).
"""

from __future__ import annotations

import base64

from batkube.api.access.rbac_authorizer import Attributes, Authorizer
from batkube.api.requests.statuses import Failure, forbidden
from batkube.api.requests.users import MASTERS
from batkube.api.requests.writes import Write
from batkube.cluster.store import KubeObject
from batkube.kernel.text.go_format import go_quote

CERTIFICATE_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_SIGNED_FIELDS = ("certificate", "conditions")


def authorize_certificate_request(
    authorizer: Authorizer, write: Write, value: KubeObject, old: KubeObject | None
) -> None:
    """Raise a 403 if a request for a certificate may not be made, approved or signed by who does so."""
    if old is None:
        if value["spec"].get("signerName") == _CLIENT_SIGNER and MASTERS in _requested_groups(write, value):
            raise _forbidden_error(write, f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed")
        return
    verb = _required_verb(write.subresource, value.get("status") or {}, old.get("status") or {})
    signer = old["spec"]["signerName"]
    if verb and not _is_permitted(authorizer, write, verb, signer):
        raise _forbidden_error(write, f"user not permitted to {verb} requests with signerName {go_quote(signer)}")


def _required_verb(subresource: str, status: KubeObject, before: KubeObject) -> str:
    """Return which right to the signer a change needs, "" for none. It is for the old signer, should that change."""
    if subresource == "approval":
        return "approve"
    is_signed = any((status.get(part) or None) != (before.get(part) or None) for part in _SIGNED_FIELDS)
    return "sign" if subresource == "status" and is_signed else ""


def _is_permitted(authorizer: Authorizer, write: Write, verb: str, signer: str) -> bool:
    names = (signer, f"{signer.partition('/')[0]}/*")
    wishes = [Attributes(verb, write.resource.group, "*", "signers", name=name) for name in names]
    return any(authorizer.authorize(write.user, wish).allowed for wish in wishes)


def _requested_groups(write: Write, value: KubeObject) -> list[str | bytes]:
    """Return the groups of whom a certificate is asked for."""
    from cryptography import x509

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(value["spec"]["request"]))
    except ValueError as problem:
        raise _forbidden_error(write, f"failed to parse CSR: {problem}") from problem
    return [part.value for part in request.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)]


def _forbidden_error(write: Write, problem: str) -> Failure:
    return forbidden(write.resource, write.name, problem)
