"""Derive a table of kinds, such as src/batkube/cluster/kind_tables/1.34.json, from the Go module of Kubernetes.

    python scripts/derive_kinds/derive.py v1.34.4

Needs Go and a module proxy (or the module in Go's cache). The table joins two parts of the module k8s.io/kubernetes:
its discovery documents (api/discovery: kinds, their names, verbs and subresources), and its Go types (fields, JSON,
protobuf, patches, OpenAPI markers), which the program `reflect_types.go` prints. The table has the versions that
kube-apiserver serves by default, neither alpha nor beta, and those that users can enable (`ON_REQUEST`), which `groups`
does not list. Descriptions are omitted, since their text is not ours. Each definition is one line, so that the diff of
the next version is readable.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TABLES = HERE.parent.parent / "src" / "batkube" / "cluster" / "kind_tables"

#: Kinds of requests and responses that are not in discovery.
META_KINDS = [
    f"meta.k8s.io/v1/{kind}"
    for kind in (
        *("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"),
        *("Status", "WatchEvent", "PartialObjectMetadata", "PartialObjectMetadataList"),
        *("APIGroup", "APIGroupList", "APIResourceList", "APIVersions"),
    )
]
#: Versions that are off by default and that we can serve, since their kinds have an effect.
ON_REQUEST = {"admissionregistration.k8s.io": ("v1beta1", "v1alpha1"), "scheduling.k8s.io": ("v1beta1", "v1alpha3")}
#: Served by an aggregated API server, and therefore not in kube-apiserver's discovery.
METRICS_GROUP = {
    "metadata": {"name": "metrics.k8s.io"},
    "versions": [
        {
            "version": "v1beta1",
            "resources": [
                {
                    "resource": plural,
                    "responseKind": {"group": "", "version": "", "kind": kind},
                    "scope": scope,
                    "singularResource": "",
                    "verbs": ["get", "list"],
                }
                for plural, kind, scope in (("nodes", "NodeMetrics", "Cluster"), ("pods", "PodMetrics", "Namespaced"))
            ],
        }
    ],
}


def main() -> None:
    """Write the table of the version given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="a version of Kubernetes, such as v1.34.4")
    version = parser.parse_args().version
    with tempfile.TemporaryDirectory() as folder:
        module = download(version, Path(folder))
        groups = [*discovered(module), METRICS_GROUP]
        types = reflected(Path(folder), sorted({*kinds_of(groups), *META_KINDS}))
    target = TABLES / f"{'.'.join(version.removeprefix('v').split('.')[:2])}.json"
    target.write_text(table(version, groups, types), encoding="utf-8")
    print(f"{target}: {target.stat().st_size // 1000} kB, {len(types['definitions'])} definitions")


def download(version: str, folder: Path) -> Path:
    """Return the folder of the module's source, and make `folder` a Go module that builds against it.

    Kubernetes' go.mod refers to its staging folders, which are replaced by the published modules.
    """
    description = run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"], folder)
    module = Path(json.loads(description)["Dir"])
    staging = "v0" + version.removeprefix("v1")
    text = (module / "go.mod").read_text(encoding="utf-8")
    text = re.sub(r"^module .*", "module batkube/derive", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"(k8s\.io/[\w.-]+) => \./staging/src/k8s\.io/[\w.-]+", rf"\1 => \1 {staging}", text)
    text = text.replace("require (", f"require (\n\tk8s.io/kubernetes {version}", 1)
    (folder / "go.mod").write_text(text, encoding="utf-8")
    (folder / "go.sum").write_bytes((module / "go.sum").read_bytes())
    return module


def run(command: list[str], folder: Path) -> str:
    """Run a command and return its output."""
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def discovered(module: Path) -> Iterator[dict[str, Any]]:
    """Yield the groups of the aggregated discovery documents, core first, with the versions of the table."""
    folder = module / "api" / "discovery"
    core = json.loads((folder / "api__v1.json").read_text(encoding="utf-8"))
    yield {"metadata": {}, "versions": [{"version": "v1", "resources": list(aggregated(core["resources"]))}]}
    for group in json.loads((folder / "aggregated_v2.json").read_text(encoding="utf-8"))["items"]:
        wanted = ON_REQUEST.get(name_of(group), ())
        versions = [each for each in group["versions"] if is_stable(each["version"]) or each["version"] in wanted]
        if versions:
            yield {**group, "versions": versions}


def is_stable(version: str) -> bool:
    """Return whether a version is neither alpha nor beta."""
    return re.fullmatch(r"v\d+", version) is not None


def aggregated(resources: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the entries of an APIResourceList in the form of aggregated discovery."""
    for entry in resources:
        if "/" in entry["name"]:
            continue
        below = [each for each in resources if each["name"].startswith(entry["name"] + "/")]
        yield {
            "resource": entry["name"],
            "responseKind": response_kind(entry),
            "scope": "Namespaced" if entry["namespaced"] else "Cluster",
            "singularResource": entry["singularName"],
            "shortNames": entry.get("shortNames", []),
            "categories": entry.get("categories", []),
            "verbs": entry["verbs"],
            "subresources": [
                {
                    "subresource": each["name"].partition("/")[2],
                    "responseKind": response_kind(each),
                    "verbs": each["verbs"],
                }
                for each in below
            ],
        }


def response_kind(entry: dict[str, Any]) -> dict[str, str]:
    """Return the kind of an APIResource's responses."""
    return {"group": entry.get("group", ""), "version": entry.get("version", ""), "kind": entry["kind"]}


def kinds_of(groups: list[dict[str, Any]]) -> Iterator[str]:
    """Yield group/version/Kind of every resource, of its list if it can be listed, and of its subresources."""
    for group in groups:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for resource in version["resources"]:
                kind = resource["responseKind"]["kind"]
                yield f"{name}/{version['version']}/{kind}"
                if "list" in resource["verbs"]:
                    yield f"{name}/{version['version']}/{kind}List"
                for below in resource.get("subresources", []):
                    answer = below["responseKind"]
                    yield f"{answer['group'] or name}/{answer['version'] or version['version']}/{answer['kind']}"


def reflected(folder: Path, kinds: list[str]) -> dict[str, Any]:
    """Run the Go program; return its description of the types of `kinds` and of all types of their fields."""
    shutil.copy(HERE / "reflect_types.go", folder / "main.go")
    run(["go", "build", "-mod=mod", "-o", "reflect_types", "."], folder)
    types: dict[str, Any] = json.loads(run(["./reflect_types", *kinds], folder))
    return types


def table(version: str, groups: list[dict[str, Any]], types: dict[str, Any]) -> str:
    """Return the text of the table: one group, resource, kind or definition per line."""
    definitions = {name: compact(each) for name, each in sorted(types["definitions"].items())}
    sections = {
        "groups": [f"{line(name_of(group))}:{line(versions_of(group))}" for group in groups],
        "resources": [line(entry) for entry in resources_of(groups)],
        "kinds": [f"{line(kind)}:{line(name)}" for kind, name in sorted(types["kinds"].items())],
        "registered": [f"{line(name)}:{line(kinds)}" for name, kinds in sorted(types["registered"].items())],
        "definitions": [f"{line(name)}:{line(each)}" for name, each in definitions.items()],
    }
    parts = [f'"kubernetes":{line(version)}']
    for name, lines in sections.items():
        opening, closing = "[]" if name == "resources" else "{}"
        parts.append(f"{line(name)}:{opening}\n" + ",\n".join(lines) + f"\n{closing}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def line(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def name_of(group: dict[str, Any]) -> str:
    """Return the name of a group of aggregated discovery; the core group has none."""
    return str(group["metadata"].get("name", ""))


def versions_of(group: dict[str, Any]) -> list[str]:
    """Return the versions of a group that are served by default, the preferred one first."""
    wanted = ON_REQUEST.get(name_of(group), ())
    return [version["version"] for version in group["versions"] if version["version"] not in wanted]


def resources_of(groups: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield every resource in the form that the loader expects."""
    for group in groups:
        for version in group["versions"]:
            for resource in version["resources"]:
                yield {
                    "group": name_of(group),
                    "version": version["version"],
                    "kind": resource["responseKind"]["kind"],
                    "plural": resource["resource"],
                    "singular": resource["singularResource"],
                    "namespaced": resource["scope"] == "Namespaced",
                    "verbs": resource["verbs"],
                    **{
                        ours: resource[theirs]
                        for ours, theirs in (("short_names", "shortNames"), ("categories", "categories"))
                        if resource.get(theirs)
                    },
                    "subresources": {
                        below["subresource"]: subresource(below) for below in resource.get("subresources", [])
                    },
                }


def subresource(below: dict[str, Any]) -> dict[str, Any]:
    """Return a subresource in the form that the loader expects."""
    answer = {key: value for key, value in below["responseKind"].items() if value}
    return {"name": below["subresource"], **answer, "verbs": below["verbs"]}


def compact(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition as `{atomic?, fields: {name: [type, protobuf number, markers?]}}`."""
    fields = {field["name"]: compact_field(field) for field in definition["fields"]}
    return {"atomic": True, "fields": fields} if definition.get("mapType") == "atomic" else {"fields": fields}


def compact_field(field: dict[str, Any]) -> list[Any]:
    """Return `[type, protobuf number, markers]`; markers only if they differ from the loader's defaults.

    The wire type follows from the type. The one in Go's tags is written by hand and sometimes wrong.
    """
    markers = {
        "always": not field["omitEmpty"],
        "omit_zero": field["omitZero"],
        "required": field.get("required"),
        "enum": field.get("enum"),
        "list": field.get("listType"),
        "keys": field.get("listKeys"),
        "atomic": field.get("mapType") == "atomic",
        "granular": field.get("mapType") == "granular",
        "patch": field.get("strategy", "").split(",") if field.get("strategy") else None,
        "merge_key": field.get("mergeKey"),
        "within": field.get("within"),
    }
    markers = {key: value for key, value in markers.items() if value}
    # If Go always writes a value, the loader uses Go's zero value as its default.
    if "default" in field and (field["default"] or field["omitEmpty"] or field["type"].startswith("*")):
        markers["default"] = field["default"]
    return [field["type"], field.get("number", 0), markers] if markers else [field["type"], field.get("number", 0)]


if __name__ == "__main__":
    main()
