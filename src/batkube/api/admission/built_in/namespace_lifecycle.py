"""NamespaceLifecycle: rejects creations in a namespace that does not exist or is being terminated.

Kubernetes: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go.
"""

from __future__ import annotations

from batkube.api.admission.request import AdmissionRequest
from batkube.api.requests import statuses
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key

#: Namespaces that cannot be deleted.
_PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")
_SYSTEM_CLASSES = ("system-node-critical", "system-cluster-critical")


def check_namespace(request: AdmissionRequest) -> None:
    """Reject writes to a missing namespace, and creations in one that is being terminated."""
    name = request.namespace
    if not name or request.resource.storage == "namespaces" or request.resource.plural == "localsubjectaccessreviews":
        return
    namespace = request.store.get("namespaces", Key(name))
    if namespace is None:
        raise Failure(404, "NotFound", f'namespaces "{name}" not found', {"name": name, "kind": "namespaces"})
    if request.old is None and (namespace.get("status") or {}).get("phase") == "Terminating":
        failure = request.forbidden(f"unable to create new content in namespace {name} because it is being terminated")
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        failure.details = {**(failure.details or {}), "causes": [cause]}
        raise failure


def check_deletable(resource: Resource, name: str) -> None:
    """Reject the deletion of a system namespace or system priority class."""
    # Kubernetes: plugin/namespace/lifecycle/admission.go; pkg/registry/scheduling/priorityclass/storage, Delete.
    if resource.storage == "namespaces" and name in _PROTECTED_NAMESPACES:
        raise statuses.forbidden(resource, name, "this namespace may not be deleted")
    if resource.storage == "priorityclasses.scheduling.k8s.io" and name in _SYSTEM_CLASSES:
        raise statuses.forbidden(resource, name, "this is a system priority class and cannot be deleted")
