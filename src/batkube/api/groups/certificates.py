"""Requests for certificates (Kubernetes: pkg/apis/certificates/validation).

That a request is a proper PKCS #10 one with a valid signature is not checked beyond its outer form: nobody signs here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from batkube.api.checks.go_values import go_difference
from batkube.api.checks.metadata import check_built_in_metadata
from batkube.api.checks.names import Verdict, dns_label, dns_subdomain, size
from batkube.api.checks.problems import Problems, repeats
from batkube.api.checks.rules import Object, Rules, Update, metadata_update

_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_TRUE_ONLY = ("Approved", "Denied", "Failed")
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_pem_type = re.compile(rb"-----BEGIN ([^-\n]*)-----\s.*?-----END \1-----", re.DOTALL).search


def _any_name(name: str, prefix: bool) -> Verdict:
    return ()


def check_signer_name(name: str, path: str, problems: Problems) -> None:
    """Check the name of a signer: a domain and a path."""
    if not name:
        problems.required(path)
        return
    domain, _, rest = name.partition("/")
    if name.count("/") != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        problems.invalid(path, name, detail)
        return
    if size(domain) > 253:
        problems.too_long(path, 253)
    for part, rule in ((domain, dns_label), (rest, dns_subdomain)):
        for label in part.split("."):
            if wrong := rule(label):
                problems.all_invalid(path, part, (f'validating label "{label}": {detail}' for detail in wrong))
                break
        if part is domain and "." not in domain:
            problems.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    if size(name) > 571:
        problems.too_long(path, 571)


def _check(request: Object, problems: Problems) -> None:
    check_built_in_metadata(request["metadata"], _any_name, False, problems)
    spec = request.get("spec", {})
    text, usages = spec.get("request") or "", spec.get("usages") or []
    block = _pem_type(base64.b64decode(text))
    if block is None or block[1] != b"CERTIFICATE REQUEST":
        problems.invalid("spec.request", text or None, "PEM block type must be CERTIFICATE REQUEST")
    if not usages:
        problems.required("spec.usages")
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            problems.not_supported(f"spec.usages[{index}]", usage, _USAGES)
    for index, (usage, is_repeated) in enumerate(zip(usages, repeats(usages), strict=True)):
        if is_repeated:
            problems.duplicate(f"spec.usages[{index}]", usage)
    if (signer := spec.get("signerName", "")) == _LEGACY_SIGNER:
        problems.invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version")
    else:
        check_signer_name(signer, "spec.signerName", problems)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        problems.invalid("spec.expirationSeconds", seconds, detail)
    _check_conditions(request, problems)
    issued = base64.b64decode((request.get("status") or {}).get("certificate") or "")
    block = _pem_type(issued)
    if issued and block is None:
        detail = "must contain at least one CERTIFICATE PEM block"
        problems.invalid("status.certificate", "<certificate data>", detail)
    elif block is not None and block[1] != b"CERTIFICATE":
        found = block[1].decode("latin-1")
        detail = f'only CERTIFICATE PEM blocks are allowed, found "{found}"'
        problems.invalid("status.certificate", "<certificate data>", detail)


def _check_conditions(request: Object, problems: Problems) -> None:
    path, seen = "status.conditions", set[str]()
    for index, condition in enumerate(request.get("status", {}).get("conditions") or ()):
        kind, status = condition.get("type", ""), condition.get("status", "")
        if not kind:
            problems.required(f"{path}[{index}].type")
        allowed = ("True",) if kind in _TRUE_ONLY else ("False", "True", "Unknown")
        if not status:
            problems.required(f"{path}[{index}].status")
        elif status not in allowed:
            problems.not_supported(f"{path}[{index}].status", status, allowed)
        opposite = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if opposite in seen:
            problems.invalid(path, kind, "Approved and Denied conditions are mutually exclusive")
        if kind in seen:
            problems.duplicate(f"{path}[{index}].type", kind)
        seen.add(kind)


def _conditions(request: Object, kind: str) -> list[Mapping[str, Any]]:
    return [c for c in request.get("status", {}).get("conditions") or () if c.get("type") == kind]


def _updated(*, approves: bool = False, signs: bool = False) -> Update:
    """Return the check of a change by somebody who may approve, or sign, or neither."""

    def update(new: Object, old: Object, problems: Problems) -> None:
        _check(new, problems)
        path = "status.conditions"
        for kind in _TRUE_ONLY:
            if len(_conditions(new, kind)) < len(_conditions(old, kind)):
                problems.forbidden(path, f'updates may not remove a condition of type "{kind}"')
        for kind in () if approves else _TRUE_ONLY[:2]:
            now, then = _conditions(new, kind), _conditions(old, kind)
            if len(now) > len(then):
                problems.forbidden(path, f'updates may not add a condition of type "{kind}"')
            elif len(now) == len(then) and now != then:
                difference = go_difference("[]certificates.CertificateSigningRequestCondition", then, now)
                problems.forbidden(path, f'updates may not modify a condition of type "{kind}"\n{difference}')
        issued, before = (one.get("status", {}).get("certificate") for one in (new, old))
        if issued != before:
            if not signs:
                problems.forbidden("status.certificate", "updates may not set certificate content")
            elif before:
                problems.forbidden("status.certificate", "updates may not modify existing certificate content")
        metadata_update(new, old, problems)

    return update


RULES = {
    "certificatesigningrequests.certificates.k8s.io": Rules(
        _check, _updated(), _updated(signs=True), {"approval": _updated(approves=True)}
    )
}
