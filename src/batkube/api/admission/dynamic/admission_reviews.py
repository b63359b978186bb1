"""AdmissionReviews: what webhooks are sent, and what is read from their answers.

Kubernetes: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go and errors/statuserror.go.
"""

from __future__ import annotations

import base64
import binascii
import string
from typing import Any, NamedTuple

from batkube.api.admission.request import AdmissionRequest, group_version_kind, group_version_resource, user_info
from batkube.api.requests.statuses import Failure
from batkube.api.requests.webhooks.calls import WebhookResponse
from batkube.api.requests.webhooks.responses import InvalidWebhookResponse, check_field_types, decode_review
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

_GROUP = "admission.k8s.io"
REVIEW_VERSIONS = ("v1", "v1beta1")
"""The versions in which webhooks may be asked."""

_GO_RESPONSE_PATH = "AdmissionResponse.response"
#: The fields of a response, with their types here and in Go.
_RESPONSE_FIELDS: dict[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "{}.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
_BASE64 = frozenset(string.ascii_letters + string.digits + "+/=\r\n")
_BAD_REQUEST = 400


class AdmissionResponse(NamedTuple):
    """What a webhook decided."""

    is_allowed: bool
    #: A Status that says why not.
    status: dict[str, Any]
    warnings: list[str]
    patch: bytes = b""
    patch_type: str = ""

    def denial(self, webhook: str) -> Failure:
        """Return the refusal that a client is told."""
        status = self.status
        by = f'admission webhook "{webhook}" denied the request'
        told = status.get("message") or status.get("reason")
        message = f"{by}: {told}" if told else f"{by} without explanation"
        code = status.get("code") or 0
        code = code if code >= _BAD_REQUEST else _BAD_REQUEST
        return Failure(code, status.get("reason") or "", message, status.get("details"), status.get("metadata"))


def new_review(
    version: str,
    uid: str,
    attempt: AdmissionRequest,
    target: Resource,
    value: KubeObject | None,
    old: KubeObject | None,
) -> dict[str, Any]:
    """Return the AdmissionReview of an attempt, with the objects in the version of `target`."""
    resource, user = attempt.resource, attempt.user
    name = attempt.name or ((value or {}).get("metadata") or {}).get("name", "")
    request: dict[str, Any] = {
        "uid": uid,
        "kind": group_version_kind(target),
        "resource": group_version_resource(target),
        **({"subResource": attempt.subresource} if attempt.subresource else {}),
        "requestKind": group_version_kind(resource),
        "requestResource": group_version_resource(resource),
        **({"requestSubResource": attempt.subresource} if attempt.subresource else {}),
        **({"name": name} if name else {}),
        **({"namespace": attempt.namespace} if attempt.namespace else {}),
        "operation": attempt.operation,
        "userInfo": {} if user is None else user_info(user),
        "object": value,
        "oldObject": old,
        "dryRun": attempt.dry_run,
        "options": attempt.options or None,
    }
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}


def decode_admission_review(reply: WebhookResponse, review: dict[str, Any]) -> dict[str, Any]:
    """Return the review that a webhook sent back. Raises InvalidWebhookResponse for what cannot be read as one."""
    version = review["apiVersion"].rpartition("/")[2]
    answer = decode_review(reply, "AdmissionReview", _GROUP, version, REVIEW_VERSIONS)
    check_field_types(answer, {"response": (dict, f"{version}.AdmissionResponse")}, "AdmissionReview")
    response = answer.get("response") or {}
    check_field_types(
        response, {name: (kind, go.format(version)) for name, (kind, go) in _RESPONSE_FIELDS.items()}, _GO_RESPONSE_PATH
    )
    _check_base64(response.get("patch") or "")
    return answer


def parse_response(answer: dict[str, Any], review: dict[str, Any], *, mutates: bool) -> AdmissionResponse:
    """Return what a webhook answered to a review. Raises ValueError for what is no proper answer."""
    response = answer.get("response")
    if response is None:
        raise ValueError("webhook response was absent")
    patch, patch_type = base64.b64decode(response.get("patch") or ""), response.get("patchType")
    # Of v1beta1 neither the uid nor the kind were ever checked.
    if review["apiVersion"] == f"{_GROUP}/v1":
        _check_identity(answer, response, review)
        _check_patch(patch, patch_type, mutates)
    elif patch:
        patch_type = "JSONPatch"
    warnings = [str(each) for each in response.get("warnings") or ()]
    return AdmissionResponse(
        response.get("allowed") is True,
        response.get("status") or {},
        warnings,
        patch if mutates else b"",
        patch_type or "",
    )


def _check_identity(answer: dict[str, Any], response: dict[str, Any], review: dict[str, Any]) -> None:
    wanted, uid = review["request"]["uid"], response.get("uid", "")
    if uid != wanted:
        raise ValueError(f'expected response.uid="{wanted}", got "{uid}"')
    api_version, kind = answer.get("apiVersion", ""), answer.get("kind", "")
    if (api_version, kind) != (review["apiVersion"], review["kind"]):
        known = f"{_GROUP}/v1, Kind=AdmissionReview"
        told = f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={kind}"
        raise ValueError(f"expected webhook response of {known}, got {told}")


def _check_patch(patch: bytes, patch_type: str | None, mutates: bool) -> None:
    if not mutates:
        if patch:
            raise ValueError("validating webhook may not return response.patch")
        if patch_type is not None:
            raise ValueError("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise ValueError("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise ValueError("webhook returned response.patchType but not response.patch")
    elif patch_type is not None and not patch_type:
        raise ValueError('webhook returned invalid response.patchType of ""')


def _check_base64(text: str) -> None:
    """Refuse what is no base64, as Go does: at the first byte that does not belong there."""
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        wrong = next((place for place, letter in enumerate(text) if letter not in _BASE64), len(text))
        raise InvalidWebhookResponse(f"illegal base64 data at input byte {wrong}") from problem
