"""Approval of community APIs (*.k8s.io): their definitions need the annotation api-approved.kubernetes.io.

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
    """The state of the annotation, with the condition's status and reason."""

    MISSING = ("False", "MissingAnnotation")
    BYPASSED = ("False", "UnapprovedAnnotation")
    APPROVED = ("True", "ApprovedAnnotation")
    INVALID = ("False", "InvalidAnnotation")


def is_protected(group: str) -> bool:
    """Return whether a group belongs to the Kubernetes community."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval_state(definition: KubeObject) -> tuple[ApprovalState, str]:
    """Return the state of the annotation, and the condition's message."""
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
    """Report a protected group without approval, unless it was unapproved before."""
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
