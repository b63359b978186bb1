"""Case scripts: cases as people write them, without answers.

A script is a YAML file `scripts/TOPIC/CASE.yaml`, much shorter than the case it becomes. `expanded` turns it into the
format of cases: the case's own namespace is created and removed around it, targets such as `deployments.apps/a/status`
become paths, bodies get their `apiVersion` and `kind`, and cluster-wide objects are deleted afterwards.
docs/reference/conformance.md describes how to write one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from batkube.cluster.kinds import KindTable, Resource
from conformance.placeholders import Json

_PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_METHODS = ("get", "post", "put", "delete", "patch", "head", "options")
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_ACCEPTING = {"table": _TABLE, "metadata": _METADATA, "metadata-list": _METADATA_LIST}
_REQUEST_KEYS = ("query", "headers", "body", "auth")
#: Steps that send no request.
_WITHOUT_REQUEST = ("sleep", "await_caches", "asked")
#: Further requirements of a case: API versions that are off by default, and a webhook.
_CASE_KEYS = ("api", "webhook")
_STEP_KEYS = ("setup", "until", "timeout", "initial", "until_closed", "bookmark_required")


class Target(NamedTuple):
    """The path of a request, and the kind of its body."""

    path: str
    group_version: str
    kind: str
    #: Whether an object created here outlives the case's namespace.
    is_cluster_wide: bool


def expanded(path: Path) -> dict[str, Json]:
    """Return the case, without answers, that the script at `path` describes."""
    topic, name = path.parent.name, path.stem
    script = yaml.safe_load(path.read_text(encoding="utf-8").replace("${ns}", f"own-{topic}-{name}"))
    return _Expansion(f"own-{topic}-{name}").case(topic, name, script)


class _Expansion:
    """Expands one script."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._cleanup: list[Json] = []

    def case(self, topic: str, name: str, script: Mapping[str, Json]) -> dict[str, Json]:
        steps = [self._step(step) for step in script["steps"]]
        has_namespace = script.get("namespace", True)
        cleanup = [self._step(step) for step in script.get("cleanup", [])] + self._cleanup[::-1]
        if has_namespace:
            steps = [*self._namespace_steps(), *steps]
            cleanup += _namespace_cleanup(self._namespace)
        more = {key: script[key] for key in _CASE_KEYS if key in script}
        return {"case": name, "topic": topic, "about": script["about"], **more, "steps": steps, "cleanup": cleanup}

    def _namespace_steps(self) -> Iterator[Json]:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        yield {"request": {"method": "POST", "path": "/api/v1/namespaces", "body": body}, "setup": True}

    def _step(self, step: Mapping[str, Json]) -> dict[str, Json]:
        if any(key in step for key in _WITHOUT_REQUEST):
            return dict(step)
        kept = {key: step[key] for key in _STEP_KEYS if key in step}
        if "watch" in step:
            request = {"path": self._target(step["watch"]).path, **_request_parts(step)}
            return {"watch": request, **kept, "while": [self._step(inner) for inner in step.get("while", [])]}
        return {"request": self._request(step), **kept}

    def _request(self, step: Mapping[str, Json]) -> dict[str, Json]:
        word = next(key for key in step if key in _METHODS or key in _PATCHES or key in _ACCEPTING)
        target = self._target(step[word])
        request = _request_parts(step)
        body = request.get("body")
        if word in _ACCEPTING:
            request["headers"] = {"Accept": _ACCEPTING[word], **request.get("headers", {})}
        elif word in _PATCHES:
            request["headers"] = {"Content-Type": _PATCHES[word], **request.get("headers", {})}
            if word == "apply":
                request["query"] = {"fieldManager": "applier", **request.get("query", {})}
        if word in ("post", "put", "apply") and isinstance(body, dict) and _wants_kind(body) and target.kind:
            request["body"] = {"apiVersion": target.group_version, "kind": target.kind, **body}
        if word == "post" and target.is_cluster_wide and isinstance(body, dict):
            self._delete_later(target, body)
        method = "PATCH" if word in _PATCHES else "GET" if word in _ACCEPTING else word.upper()
        return {"method": method, "path": target.path, **request}

    def _delete_later(self, target: Target, body: Mapping[str, Json]) -> None:
        name = (body.get("metadata") or {}).get("name")
        if name and target.kind == "Namespace":
            self._cleanup += reversed(_namespace_cleanup(name))
        elif name:
            self._cleanup.append({"request": {"method": "DELETE", "path": f"{target.path}/{name}"}})

    def _target(self, text: str) -> Target:
        if text.startswith("/"):
            collection = text.strip("/").count("/") == (2 if text.startswith("/api/") else 3)
            return Target(text, "", "", collection)
        resource_name, *rest = text.split("/")
        resource = _resources()[resource_name]
        below = f"/{'/'.join(rest)}" if rest else ""
        root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        place = f"/namespaces/{self._namespace}" if resource.namespaced else ""
        group_version, kind = resource.api_version, resource.kind
        if len(rest) > 1 and rest[1] in resource.subresources:
            sub = resource.subresources[rest[1]]
            kind = sub.kind
            if sub.version:
                group_version = f"{sub.group}/{sub.version}" if sub.group else sub.version
        return Target(
            f"{root}{place}/{resource.plural}{below}", group_version, kind, not resource.namespaced and not rest
        )


def _namespace_cleanup(name: str) -> list[Json]:
    """Return the requests that remove a namespace: without controllers it would stay in the phase Terminating."""
    path = f"/api/v1/namespaces/{name}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
    return [
        {"request": {"method": "DELETE", "path": path}},
        {"request": {"method": "PUT", "path": f"{path}/finalize", "body": body}},
    ]


def _request_parts(step: Mapping[str, Json]) -> dict[str, Json]:
    return {key: step[key] for key in _REQUEST_KEYS if key in step}


def _wants_kind(body: Mapping[str, Json]) -> bool:
    return not any(key in body for key in ("kind", "apiVersion", "$from", "$generate"))


@functools.cache
def _resources() -> dict[str, Resource]:
    """Return every built-in resource by its name in targets (`pods`, `deployments.apps`), in the preferred version."""
    table = KindTable.builtin()
    for version in table.optional_versions:
        table.serve(*version.split("/"))
    preferred = {group.name: group.preferred for group in table.groups()}
    known: dict[str, Resource] = {}
    for resource in table.resources():
        if resource.group_resource not in known or preferred.get(resource.group) == resource.version:
            known[resource.group_resource] = resource
    return known
