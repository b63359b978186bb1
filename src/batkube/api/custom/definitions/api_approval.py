"""Groups of the Kubernetes community: a definition in one must say where its API was approved.

Kubernetes: apiextensions-apiserver/pkg/apihelpers/helpers.go and controller/apiapproval.
"""

from __future__ import annotations

import enum
from urllib.parse import urlsplit

from batkube.api.validation.problems import Problems
from batkube.cluster.store import KubeObject

ANNOTATION = "api-approved.kubernetes.io"
_SEE_POLICY = "see https://github.com/kubernetes/enhancements/pull/1111"


class ApprovalState(enum.Enum):
    """What the annotation says, with the status and the reason of the condition that tells of it."""

    MISSING = ("False", "MissingAnnotation")
    BYPASSED = ("False", "UnapprovedAnnotation")
    APPROVED = ("True", "ApprovedAnnotation")
    INVALID = ("False", "InvalidAnnotation")


def is_protected(group: str) -> bool:
    """Return whether a group belongs to the community."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval_state(definition: KubeObject) -> tuple[ApprovalState, str]:
    """Return what the annotation says, and that in words."""
    text = (definition["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    if not text:
        return ApprovalState.MISSING, f'protected groups must have approval annotation "{ANNOTATION}", {_SEE_POLICY}'
    if text.startswith("unapproved"):
        return ApprovalState.BYPASSED, f'not approved: "{text}"'
    if _is_url(text):
        return ApprovalState.APPROVED, f"approved in {text}"
    return ApprovalState.INVALID, (
        f'protected groups must have approval annotation "{ANNOTATION}" with either a URL or a reason starting with '
        f'"unapproved", {_SEE_POLICY}'
    )


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


def check_approval(value: KubeObject, old: KubeObject | None, problems: Problems) -> None:
    """Object to a protected group without approval, unless it was so before."""
    if not is_protected((value.get("spec") or {}).get("group", "")):
        return
    state, problem = approval_state(value)
    if old is not None and approval_state(old)[0] is state:
        return
    path = f"metadata.annotations[{ANNOTATION}]"
    if state is ApprovalState.MISSING:
        problems.required(path, problem)
    elif state is ApprovalState.INVALID:
        problems.invalid(path, value["metadata"]["annotations"][ANNOTATION], problem)
