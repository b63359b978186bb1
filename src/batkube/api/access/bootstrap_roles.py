"""The RBAC roles and bindings that every cluster starts with.

kube-apiserver creates them as ordinary objects when it starts (Kubernetes:
plugin/pkg/auth/authorizer/rbac/bootstrappolicy). The table is derived by scripts/derive_bootstrap_roles.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from batkube.api.access.rbac_authorizer import RBAC_GROUP
from batkube.cluster.store import KubeObject

_KIND_OF_PLURAL = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}


def bootstrap_policy() -> list[KubeObject]:
    """Return the objects in the order of their creation, without uid and creationTimestamp."""
    table = msgspec.json.decode(Path(__file__).with_name("bootstrap_roles.json").read_bytes())
    return [_new_object(_KIND_OF_PLURAL[resource], entry) for resource, entries in table.items() for entry in entries]


def _new_object(kind: str, entry: dict[str, Any]) -> KubeObject:
    metadata: KubeObject = {
        "name": entry["name"],
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **entry.get("labels", {})},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    if "namespace" in entry:
        metadata["namespace"] = entry["namespace"]
    value: KubeObject = {"kind": kind, "apiVersion": f"{RBAC_GROUP}/v1", "metadata": metadata}
    if "role" in entry:
        value["subjects"] = [_subject(*subject) for subject in entry["subjects"]]
        role_kind, role = entry["role"]
        value["roleRef"] = {"apiGroup": RBAC_GROUP, "kind": role_kind, "name": role}
        return value
    value["rules"] = entry.get("rules")
    if "aggregates" in entry:
        value["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels} for labels in entry["aggregates"]]}
    return value


def _subject(kind: str, name: str, namespace: str = "") -> KubeObject:
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "apiGroup": RBAC_GROUP, "name": name}
