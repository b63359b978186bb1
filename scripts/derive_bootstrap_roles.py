"""Derive the roles and bindings of a new cluster from the test data of Kubernetes.

    python scripts/derive_bootstrap_roles.py path/to/k8s.io/kubernetes

The folder is the unpacked Go module k8s.io/kubernetes; its plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata
has the policy as YAML. Labels, annotations and API groups that all entries share are omitted here, and added again by
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
    """Return a role or binding without the parts that all share."""
    metadata = entry["metadata"]
    row: dict[str, Any] = {"name": metadata["name"]}
    if "namespace" in metadata:
        row["namespace"] = metadata["namespace"]
    labels = {key: value for key, value in metadata["labels"].items() if key != SHARED_LABEL}
    if labels:
        row["labels"] = labels
    if "aggregationRule" in entry:
        row["aggregates"] = [one["matchLabels"] for one in entry["aggregationRule"]["clusterRoleSelectors"]]
    if "roleRef" in entry:
        row["role"] = [entry["roleRef"]["kind"], entry["roleRef"]["name"]]
        row["subjects"] = [
            [one["kind"], one["name"], *([one["namespace"]] if "namespace" in one else [])]
            for one in entry.get("subjects") or ()
        ]
    elif entry.get("rules"):
        row["rules"] = entry["rules"]
    return row


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
