"""Derive the roles and bindings that every cluster starts with from those that Kubernetes tests itself against.

    python scripts/derive_bootstrap_roles.py path/to/k8s.io/kubernetes

The folder is the unpacked Go module k8s.io/kubernetes; its plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata
lists the policy as YAML. What all entries share (labels, annotations, API groups) is left out here and put back by
batkube.api.access.bootstrap_roles.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

FOLDER = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
#: In the order in which the real server creates them.
FILES = {
    "clusterroles": ("cluster-roles.yaml", "controller-roles.yaml"),
    "clusterrolebindings": ("cluster-role-bindings.yaml", "controller-role-bindings.yaml"),
    "roles": ("namespace-roles.yaml",),
    "rolebindings": ("namespace-role-bindings.yaml",),
}
SHARED_LABEL = "kubernetes.io/bootstrapping"
TARGET = Path(__file__).resolve().parent.parent / "src/batkube/api/access/bootstrap_roles.json"


def compact(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what is particular to one role or binding."""
    metadata = entry["metadata"]
    found: dict[str, Any] = {"name": metadata["name"]}
    if "namespace" in metadata:
        found["namespace"] = metadata["namespace"]
    labels = {key: value for key, value in metadata["labels"].items() if key != SHARED_LABEL}
    if labels:
        found["labels"] = labels
    if "aggregationRule" in entry:
        found["aggregates"] = [one["matchLabels"] for one in entry["aggregationRule"]["clusterRoleSelectors"]]
    if "roleRef" in entry:
        found["role"] = [entry["roleRef"]["kind"], entry["roleRef"]["name"]]
        found["subjects"] = [
            [one["kind"], one["name"], *([one["namespace"]] if "namespace" in one else [])]
            for one in entry.get("subjects") or ()
        ]
    elif entry.get("rules"):
        found["rules"] = entry["rules"]
    return found


def main(module: Path) -> None:
    """Write the table."""
    lines = []
    for resource, names in FILES.items():
        entries = [item for name in names for item in yaml.safe_load((module / FOLDER / name).read_text())["items"]]
        rows = ",\n".join(json.dumps(compact(entry), separators=(",", ":")) for entry in entries)
        lines.append(f'"{resource}":[\n{rows}\n]')
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
