"""CertificateSigningRequests and trust bundles: creation, approval and signing.

Kubernetes: pkg/apis/certificates and pkg/registry/certificates.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import SPEC, STATUS, Strategy
from batkube.api.printing.ages import age, human_duration
from batkube.api.printing.cell_texts import NONE
from batkube.api.validation.go_values import go_difference
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import ErrorMessages, byte_length, dns_label, dns_subdomain
from batkube.api.validation.problems import Problems, mark_repeats
from batkube.api.validation.rules import Object, ValidateUpdate, ValidationRules, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, rfc3339

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


# Strategy


def prepare_signing_request_create(request: dict[str, Any], context: StrategyContext) -> None:
    """Record the user who created the request, whatever the request says."""
    spec = request["spec"]
    for name in ("username", "uid", "groups", "extra"):
        spec.pop(name, None)
    if context.user:
        spec["username"] = context.user
    if context.uid:
        spec["uid"] = context.uid
    if context.groups:
        spec["groups"] = list(context.groups)


def prepare_approval_update(request: dict[str, Any], old: dict[str, Any], context: StrategyContext) -> None:
    """Set lastUpdateTime of new conditions; existing conditions keep theirs."""
    now = rfc3339(context.now)
    live = (old.get("status") or {}).get("conditions") or ()
    for condition in (request.get("status") or {}).get("conditions") or ():
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            same = [
                candidate
                for candidate in live
                if all(candidate.get(key) == condition.get(key) for key in ("type", "status"))
            ]
            condition["lastTransitionTime"] = (same and same[0].get("lastTransitionTime")) or now


def prepare_signing_request_status_update(
    request: dict[str, Any], old: dict[str, Any], context: StrategyContext
) -> None:
    """Keep the approval in a status update; validation rejects an update that changes it."""
    conditions = (request.get("status") or {}).get("conditions") or []
    before = (old.get("status") or {}).get("conditions") or ()
    for kind in ("Approved", "Denied"):
        indexes = [index for index, item in enumerate(conditions) if item.get("type") == kind]
        old_conditions = [item for item in before if item.get("type") == kind]
        if len(indexes) == len(old_conditions):
            for index, condition in zip(indexes, old_conditions, strict=True):
                conditions[index] = condition
    prepare_approval_update(request, old, context)


# Validation


def _any_name_rule(name: str, prefix: bool) -> ErrorMessages:
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
    if byte_length(domain) > 253:
        problems.too_long(path, 253)
    for part, rule in ((domain, dns_label), (rest, dns_subdomain)):
        for label in part.split("."):
            if wrong := rule(label):
                problems.all_invalid(path, part, (f'validating label "{label}": {detail}' for detail in wrong))
                break
        if part is domain and "." not in domain:
            problems.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    if byte_length(name) > 571:
        problems.too_long(path, 571)


def _validate_signing_request(request: Object, problems: Problems) -> None:
    check_built_in_metadata(request["metadata"], _any_name_rule, False, problems)
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
    for index, (usage, is_repeated) in enumerate(zip(usages, mark_repeats(usages), strict=True)):
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
        label = block[1].decode("latin-1")
        detail = f'only CERTIFICATE PEM blocks are allowed, found "{label}"'
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


def _conditions_of_type(request: Object, kind: str) -> list[Mapping[str, Any]]:
    return [c for c in request.get("status", {}).get("conditions") or () if c.get("type") == kind]


def _update_validator(*, approves: bool = False, signs: bool = False) -> ValidateUpdate:
    """Return the check of an update that may approve, or sign, or neither."""

    def update(new: Object, old: Object, problems: Problems) -> None:
        _validate_signing_request(new, problems)
        path = "status.conditions"
        for kind in _TRUE_ONLY:
            if len(_conditions_of_type(new, kind)) < len(_conditions_of_type(old, kind)):
                problems.forbidden(path, f'updates may not remove a condition of type "{kind}"')
        for kind in () if approves else _TRUE_ONLY[:2]:
            now, then = _conditions_of_type(new, kind), _conditions_of_type(old, kind)
            if len(now) > len(then):
                problems.forbidden(path, f'updates may not add a condition of type "{kind}"')
            elif len(now) == len(then) and now != then:
                difference = go_difference("[]certificates.CertificateSigningRequestCondition", then, now)
                problems.forbidden(path, f'updates may not modify a condition of type "{kind}"\n{difference}')
        issued, before = (csr.get("status", {}).get("certificate") for csr in (new, old))
        if issued != before:
            if not signs:
                problems.forbidden("status.certificate", "updates may not set certificate content")
            elif before:
                problems.forbidden("status.certificate", "updates may not modify existing certificate content")
        validate_metadata_update(new, old, problems)

    return update


# Columns


def certificate_request_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a CertificateSigningRequest."""
    spec = value.get("spec", {})
    seconds = spec.get("expirationSeconds")
    return [
        value["metadata"].get("name", ""),
        age(value, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human_duration(seconds * NANOSECONDS_PER_SECOND),
        _certificate_status(value.get("status", {})),
    ]


def _certificate_status(status: Mapping[str, Any]) -> str:
    types = {condition.get("type") for condition in status.get("conditions") or ()}
    states = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    if "Failed" in types:
        states.append("Failed")
    if status.get("certificate"):
        states.append("Issued")
    return ",".join(states)


def trust_bundle_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ClusterTrustBundle."""
    return [value["metadata"].get("name", ""), value.get("spec", {}).get("signerName") or NONE]


def pod_certificate_request_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a PodCertificateRequest."""
    spec, state = value.get("spec", {}), "Pending"
    for condition in value.get("status", {}).get("conditions") or ():
        if condition.get("type") in ("Issued", "Denied", "Failed"):
            state = condition["type"]
    names = (spec.get(field, "") for field in ("podName", "serviceAccountName", "nodeName", "signerName"))
    return [value["metadata"].get("name", ""), *names, state]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "certificatesigningrequests.certificates.k8s.io": Kind(
        strategy=Strategy(
            protected_fields={
                "": (SPEC, STATUS),
                "status": (SPEC,),
                "approval": (SPEC, ("status", "certificate")),
            }
        ),
        prepare_create=prepare_signing_request_create,
        prepare_update={"approval": prepare_approval_update, "status": prepare_signing_request_status_update},
        rules=ValidationRules(
            _validate_signing_request,
            _update_validator(),
            _update_validator(signs=True),
            {"approval": _update_validator(approves=True)},
        ),
        cells=certificate_request_cells,
    ),
    "clustertrustbundles.certificates.k8s.io": Kind(
        cells=trust_bundle_cells,
    ),
    "podcertificaterequests.certificates.k8s.io": Kind(
        cells=pod_certificate_request_cells,
    ),
}
