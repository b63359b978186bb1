"""Discovery documents, from which clients learn the served groups, versions and resources.

There are two forms. The unaggregated one takes a request per group version (/api, /apis, /apis/GROUP,
/apis/GROUP/VERSION). The aggregated one, which kubectl and client-go request by their Accept header, describes all of
/api or /apis at once (Kubernetes: apiserver/pkg/endpoints/discovery). Both are derived from the table of kinds, which
includes custom kinds.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from batkube.cluster.kinds import METRICS_GROUP, Group, KindTable, Resource, SubResource

AGGREGATED_VERSION = "v2"
Document = dict[str, Any]


Verbs = Callable[[Resource], Sequence[str]]


def _all_verbs(resource: Resource) -> Sequence[str]:
    return resource.verbs


def api_versions(server_address: str) -> Document:
    """Return the answer to /api: the versions of the core group."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(table: KindTable) -> Document:
    """Return the answer to /apis: all groups but the core one."""
    groups = [_api_group(group) for group in table.groups() if group.name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(table: KindTable, name: str) -> Document | None:
    """Return the answer to /apis/GROUP; None if there is no such group."""
    match = next((group for group in table.groups() if group.name == name), None)
    return None if match is None or not name else {"kind": "APIGroup", "apiVersion": "v1", **_api_group(match)}


def resource_list(table: KindTable, group: str, version: str, verbs: Verbs = _all_verbs) -> Document | None:
    """Return the answer to /api/v1 or /apis/GROUP/VERSION; None if it is not served.

    `verbs` returns the current verbs of a resource; a custom resource that is being deleted has fewer.
    """
    resources = [each for each in table.resources() if each.group == group and each.version == version]
    if not resources:
        return None
    entries = [entry for resource in resources for entry in _api_resources(resource, verbs)]
    answer: Document = {"kind": "APIResourceList", "groupVersion": resources[0].api_version, "resources": entries}
    # The core group omits apiVersion: its response predates API groups.
    return {"apiVersion": "v1", **answer} if group else answer


def aggregated_discovery(table: KindTable, *, core: bool, verbs: Verbs = _all_verbs) -> Document:
    """Return the aggregated discovery of /api (`core`) or /apis, an APIGroupDiscoveryList."""
    resources = table.resources()
    items = [_group_discovery(group, resources, verbs) for group in table.groups() if core is not bool(group.name)]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{AGGREGATED_VERSION}",
        "metadata": {},
        "items": items,
    }


def _api_resources(resource: Resource, verbs: Verbs) -> list[Document]:
    """Return the APIResources of a resource and its sub-resources."""
    entry: Document = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(verbs(resource)),
        **_names(resource),
    }
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = _storage_version_hash(resource)
    return [entry, *(_api_subresource(resource, subresource) for subresource in resource.subresources.values())]


def _group_discovery(group: Group, resources: list[Resource], verbs: Verbs) -> Document:
    by_version: dict[str, list[Document]] = {version: [] for version in group.versions}
    for resource in resources:
        if resource.group == group.name:
            by_version[resource.version].append(_resource_discovery(resource, verbs))
    versions = [
        {"version": version, "resources": items, "freshness": "Current"} for version, items in by_version.items()
    ]
    return {"metadata": {"name": group.name} if group.name else {}, "versions": versions}


def _resource_discovery(resource: Resource, verbs: Verbs) -> Document:
    item: Document = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(verbs(resource)),
        **_names(resource),
    }
    if resource.subresources:
        item["subresources"] = [
            {
                "subresource": subresource.name,
                "responseKind": _response_kind(resource, subresource.kind, subresource.group, subresource.version),
                "verbs": list(subresource.verbs),
            }
            for subresource in resource.subresources.values()
        ]
    return item


def _api_group(group: Group) -> Document:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _names(resource: Resource) -> Document:
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return {key: value for key, value in names.items() if value}


def _api_subresource(resource: Resource, subresource: SubResource) -> Document:
    entry: Document = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind,
        "verbs": list(subresource.verbs),
    }
    if subresource.version:
        entry.update(group=subresource.group, version=subresource.version)
    return entry


def _storage_version_hash(resource: Resource) -> str:
    """Return the hash by which storage migrators detect a new storage version."""
    # Kubernetes: apiserver/pkg/endpoints/discovery/storageversionhash.go, StorageVersionHash.
    digest = hashlib.sha256(f"{resource.group}/{resource.version}/{resource.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _response_kind(resource: Resource, kind: str, group: str = "", version: str = "") -> Document:
    """Return a `responseKind`. Built-in resources leave group and version empty unless they differ from their own."""
    is_external = resource.custom or resource.group == METRICS_GROUP
    own_group, own_version = (resource.group, resource.version) if is_external else ("", "")
    return {"group": group or own_group, "version": version or own_version, "kind": kind}
