"""AdmissionReviews: build the request to a webhook and parse its response.

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
from batkube.api.requests.webhooks.responses import (
    STATUS_FIELDS,
    InvalidWebhookResponse,
    check_field_types,
    decode_review,
)
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

_GROUP = "admission.k8s.io"
REVIEW_VERSIONS = ("v1", "v1beta1")
"""The supported versions of AdmissionReview."""

_GO_RESPONSE_PATH = "AdmissionResponse.response"
#: The fields of a response with their Python and Go types.
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
    """The decision of a webhook."""

    is_allowed: bool
    #: The Status that explains a denial.
    status: dict[str, Any]
    warnings: list[str]
    patch: bytes = b""
    patch_type: str = ""

    def denial(self, webhook: str) -> Failure:
        """Return the failure that the client gets for a denied request (Kubernetes: webhook/errors, ToStatusErr)."""
        status = self.status
        denied = f'admission webhook "{webhook}" denied the request'
        explanation = status.get("message") or status.get("reason")
        message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
        code = status.get("code") or 0
        code = code if code >= _BAD_REQUEST else _BAD_REQUEST
        return Failure(code, status.get("reason") or "", message, status.get("details"), status.get("metadata"))


def new_review(
    version: str,
    uid: str,
    request: AdmissionRequest,
    target: Resource,
    value: KubeObject | None,
    old: KubeObject | None,
) -> dict[str, Any]:
    """Return the AdmissionReview of a request, with the objects in the version of `target`."""
    resource, user = request.resource, request.user
    name = request.name or ((value or {}).get("metadata") or {}).get("name", "")
    fields: dict[str, Any] = {
        "uid": uid,
        "kind": group_version_kind(target),
        "resource": group_version_resource(target),
        **({"subResource": request.subresource} if request.subresource else {}),
        "requestKind": group_version_kind(resource),
        "requestResource": group_version_resource(resource),
        **({"requestSubResource": request.subresource} if request.subresource else {}),
        **({"name": name} if name else {}),
        **({"namespace": request.namespace} if request.namespace else {}),
        "operation": request.operation,
        "userInfo": {} if user is None else user_info(user),
        "object": value,
        "oldObject": old,
        "dryRun": request.dry_run,
        "options": request.options or None,
    }
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": fields}


def decode_admission_review(http_response: WebhookResponse, review: dict[str, Any]) -> dict[str, Any]:
    """Return the review in a webhook's response; raises InvalidWebhookResponse."""
    version = review["apiVersion"].rpartition("/")[2]
    returned = decode_review(http_response, "AdmissionReview", _GROUP, version, REVIEW_VERSIONS)
    check_field_types(returned, {"response": (dict, f"{version}.AdmissionResponse")}, "AdmissionReview")
    response = returned.get("response") or {}
    check_field_types(
        response, {name: (kind, go.format(version)) for name, (kind, go) in _RESPONSE_FIELDS.items()}, _GO_RESPONSE_PATH
    )
    check_field_types(response.get("status") or {}, STATUS_FIELDS, "Status.response.status")
    _check_base64(response.get("patch") or "")
    return returned


def parse_response(returned: dict[str, Any], review: dict[str, Any], *, mutates: bool) -> AdmissionResponse:
    """Return the decision in the review that a webhook returned; raises ValueError if it is invalid."""
    response = returned.get("response")
    if response is None:
        raise ValueError("webhook response was absent")
    patch, patch_type = base64.b64decode(response.get("patch") or ""), response.get("patchType")
    # kube-apiserver checks neither uid nor kind in v1beta1 (Kubernetes: VerifyAdmissionResponse).
    if review["apiVersion"] == f"{_GROUP}/v1":
        _check_identity(returned, response, review)
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


def _check_identity(returned: dict[str, Any], response: dict[str, Any], review: dict[str, Any]) -> None:
    expected_uid, uid = review["request"]["uid"], response.get("uid") or ""
    if uid != expected_uid:
        raise ValueError(f'expected response.uid="{expected_uid}", got "{uid}"')
    api_version, kind = returned.get("apiVersion") or "", returned.get("kind") or ""
    if (api_version, kind) != (review["apiVersion"], review["kind"]):
        expected = f"{_GROUP}/v1, Kind=AdmissionReview"
        actual = f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={kind}"
        raise ValueError(f"expected webhook response of {expected}, got {actual}")


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
    """Raise Go's error for invalid base64, which names the first invalid byte."""
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        position = next((index for index, letter in enumerate(text) if letter not in _BASE64), len(text))
        raise InvalidWebhookResponse(f"illegal base64 data at input byte {position}") from problem
