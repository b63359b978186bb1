"""Derive the table of Kubernetes' internal Go structs that validation messages print (api/validation/go_types.json).

The real server validates its internal types, which have no JSON tags, and quotes them in messages as encoding/json
does: every field, by its Go name, in the order of the Go source. The table has the fields of each struct in this order,
with their types and their names in the versioned API.

    python scripts/derive_go_types.py MODULES > src/batkube/api/validation/go_types.json

MODULES is a folder with the Go modules k8s.io/kubernetes, k8s.io/api and k8s.io/apimachinery of one release, in the
layout of a Go module cache.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

KUBERNETES, LIBRARIES = "kubernetes@v1.34.4", "@v0.34.4"
#: Group of internal types and the version whose JSON names it has.
VERSIONED = {
    "core": "core/v1",
    "apps": "apps/v1",
    "batch": "batch/v1",
    "policy": "policy/v1",
    "rbac": "rbac/v1",
    "storage": "storage/v1",
    "networking": "networking/v1",
    "autoscaling": "autoscaling/v2",
    "discovery": "discovery/v1",
    "resource": "resource/v1",
    "node": "node/v1",
    "certificates": "certificates/v1",
    "flowcontrol": "flowcontrol/v1",
    "admissionregistration": "admissionregistration/v1",
    "authorization": "authorization/v1",
}
#: The structs that messages quote; the structs of their fields are added.
ROOTS = [
    "core.PodTemplateSpec",
    "core.EphemeralContainer",
    "core.PodResourceClaim",
    "core.Taint",
    "core.NodeAddress",
    "core.ServicePort",
    "core.PodIP",
    "core.HostIP",
    "core.PersistentVolumeClaim",
    "core.PersistentVolume",
    "core.PersistentVolumeSource",
    "core.NodeConfigSource",
    "core.SecurityContext",
    "core.ContainerResizePolicy",
    "core.ClusterTrustBundleProjection",
    "core.ScopeSelector",
    "core.ScopedResourceSelectorRequirement",
    "core.ObjectReference",
    "core.EventSource",
    "core.LoadBalancerIngress",
    "apps.StatefulSetSpec",
    "apps.DaemonSetSpec",
    "apps.DeploymentStrategy",
    "batch.JobSpec",
    "batch.JobStatus",
    "policy.PodDisruptionBudgetSpec",
    "rbac.RoleRef",
    "rbac.PolicyRule",
    "rbac.Subject",
    "storage.CSIDriverSpec",
    "storage.CSINodeDriver",
    "storage.VolumeAttachmentSpec",
    "storage.StorageClass",
    "storage.VolumeAttributesClass",
    "networking.IngressBackend",
    "networking.IPAddressSpec",
    "networking.ServiceCIDRSpec",
    "networking.NetworkPolicyPort",
    "networking.IngressClassParametersReference",
    "networking.IngressClassSpec",
    "networking.ParentReference",
    "autoscaling.MetricSpec",
    "autoscaling.HPAScalingRules",
    "autoscaling.HPAScalingPolicy",
    "discovery.Endpoint",
    "discovery.EndpointPort",
    "resource.ResourceClaimSpec",
    "resource.ResourceClaimTemplateSpec",
    "resource.AllocationResult",
    "resource.ResourceSliceSpec",
    "resource.DeviceClassSpec",
    "resource.ResourceClaimStatus",
    "node.RuntimeClass",
    "node.Overhead",
    "certificates.CertificateSigningRequestSpec",
    "certificates.CertificateSigningRequestStatus",
    "flowcontrol.FlowSchemaSpec",
    "flowcontrol.PriorityLevelConfigurationSpec",
    "admissionregistration.RuleWithOperations",
    "admissionregistration.WebhookClientConfig",
    "admissionregistration.ParamRef",
    "admissionregistration.ParamKind",
    "authorization.ResourceAttributes",
    "authorization.NonResourceAttributes",
    "meta.LabelSelector",
    "meta.OwnerReference",
    "meta.ObjectMeta",
    "meta.Condition",
]
BASES = {
    "metav1.Time": "time",
    "metav1.MicroTime": "time",
    "metav1.Duration": "string",
    "resource.Quantity": "quantity",
    "apiresource.Quantity": "quantity",
    "intstr.IntOrString": "intstr",
    "types.UID": "string",
    "runtime.RawExtension": "any",
    "runtime.Object": "any",
    "metav1.FieldsV1": "any",
    "FieldsV1": "any",
    "Time": "time",
    "MicroTime": "time",
    "Duration": "string",
    "interface{}": "any",
}
SIMPLE = {"string", "bool", "int", "int32", "int64", "uint32", "float64", "time", "quantity", "intstr", "any", "bytes"}
FIELD = re.compile(
    r"^\t(?P<name>[A-Z]\w*)\s+(?P<type>\S+(?:\s*\{\})?)\s*(?:`json:\"(?P<tag>[^\"]*)\".*`)?\s*(?://.*)?$"
)
EMBEDDED = re.compile(r"^\t(?P<type>[A-Za-z][\w.]*)\s*(?:`json:\"(?P<tag>[^\"]*)\".*`)?\s*(?://.*)?$")


def structs(source: Path) -> tuple[dict[str, list[tuple[str, str, str | None]]], dict[str, str]]:
    """Return the structs of a Go file, each as (Go name or "" if embedded, type, tag), and its named plain types."""
    structs_by_name: dict[str, list[tuple[str, str, str | None]]] = {}
    plain: dict[str, str] = {}
    fields: list[tuple[str, str, str | None]] | None = None
    for line in source.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"^type (\w+) struct \{$", line):
            fields = structs_by_name[match[1]] = []
        elif match := re.match(r"^type (\w+) ([\[\]\w.*]+)$", line):
            plain[match[1]] = match[2]
        elif line == "}":
            fields = None
        elif fields is not None and not line.strip().startswith("//"):
            if match := FIELD.match(line):
                fields.append((match["name"], match["type"], match["tag"]))
            elif match := EMBEDDED.match(line):
                fields.append(("", match["type"], match["tag"]))
    return structs_by_name, plain


class Types:
    """All structs, and the table of those that the roots need."""

    def __init__(self, modules: Path) -> None:
        self.structs: dict[str, list[tuple[str, str, str | None]]] = {}
        self.plain: dict[str, str] = {}
        self.json_names: dict[str, dict[str, str]] = {}
        self.table: dict[str, list[str]] = {}
        for group, version in VERSIONED.items():
            self._read(group, modules / KUBERNETES / "pkg/apis" / group / "types.go")
            versioned, _ = structs(modules / f"api{LIBRARIES}" / version / "types.go")
            for name, fields in versioned.items():
                tags = {go: (tag or "").split(",")[0] for go, _, tag in fields if go}
                self.json_names[f"{group}.{name}"] = tags
        self._read("meta", modules / f"apimachinery{LIBRARIES}" / "pkg/apis/meta/v1/types.go")

    def _read(self, group: str, source: Path) -> None:
        structs_by_name, plain = structs(source)
        self.structs |= {f"{group}.{name}": fields for name, fields in structs_by_name.items()}
        self.plain |= {f"{group}.{name}": base for name, base in plain.items()}

    def resolve(self, text: str, group: str) -> str:
        """Return a Go type in the notation of the table, and add its structs to the table."""
        for prefix in ("[]", "*"):
            if text.startswith(prefix):
                inner = self.resolve(text[len(prefix) :], group)
                return "bytes" if prefix + text[len(prefix) :] == "[]byte" else prefix + inner
        if match := re.match(r"map\[([\w.]+)\](.+)$", text):
            return "map " + self.resolve(match[2], group)
        if text in BASES:
            return BASES[text]
        if text in SIMPLE or text == "byte":
            return text
        name = self._full(text, group)
        if name in self.plain:
            return self.resolve(self.plain[name], name.split(".")[0])
        self.add(name)
        return name

    @staticmethod
    def _full(text: str, group: str) -> str:
        package, _, name = text.rpartition(".")
        aliases = {"": group, "metav1": "meta", "api": "core", "corev1": "core"}
        return f"{aliases.get(package, package)}.{name}"

    def add(self, name: str) -> None:
        """Add a struct and the structs of its fields to the table."""
        if name in self.table:
            return
        rows = self.table[name] = []
        rows.extend(self._rows(name))

    def _rows(self, name: str) -> list[str]:
        group = name.split(".")[0]
        rows: list[str] = []
        for go, text, tag in self.structs[name]:
            if not go:
                if not text.endswith("TypeMeta"):
                    rows.extend(self._embedded(self._full(text, group)))
            elif group == "meta" or tag:
                json_name, _, options = (tag or "").partition(",")
                rows.append(
                    f"{json_name}{'?' if 'omitempty' in options else ''} {json_name} {self.resolve(text, group)}"
                )
            else:
                versioned = self.json_names.get(name, {}).get(go) or go[0].lower() + go[1:]
                rows.append(f"{go} {versioned} {self.resolve(text, group)}")
        return rows

    def _embedded(self, name: str) -> list[str]:
        """Return the rows of an embedded struct; metadata is embedded in Go, but a field in the API."""
        rows = self._rows(name)
        return [row.replace(" ", " metadata.", 1) for row in rows] if name == "meta.ObjectMeta" else rows


def main() -> None:
    """Print the table."""
    types = Types(Path(sys.argv[1]))
    for root in ROOTS:
        types.add(root)
    lines = [f" {json.dumps(name)}: {json.dumps('; '.join(rows))}" for name, rows in sorted(types.table.items())]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
