"""Rejects resizes of pods whose kubelets cannot perform them, whatever the status of the pod reports."""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.admission.request import AdmissionRequest, Plugin
from batkube.api.requests import statuses
from batkube.api.validation.problems import Problems
from batkube.cluster.store import Key

CanResize = Callable[[Key], bool]
"""Returns whether the kubelet of a pod can change its resources."""


def resize_check(can_resize: CanResize) -> Plugin:
    """Return the plugin that rejects resizes of pods whose kubelet cannot resize (Kubernetes: ValidatePodResize)."""

    def check_resize(request: AdmissionRequest) -> None:
        if not can_resize(request.key):
            problems = Problems()
            problems.forbidden("spec", "Pod running on node without support for resize")
            raise statuses.invalid(request.resource, request.name, problems)

    return check_resize
