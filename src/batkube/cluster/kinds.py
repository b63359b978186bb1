"""The API resources of a cluster: names, scope, verbs and schema of every kind, built-in or custom.

A `Resource` is one kind in one version, as a path names it (`/apis/apps/v1/…/deployments`). Objects are stored once
under the `storage` name and are served in every version. The `KindTable` holds all resources: the built-in ones come
from the files of `kind_tables`, one per version of Kubernetes, which `scripts/derive_kinds` derives from Kubernetes
itself; CustomResourceDefinitions add theirs.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from batkube.cluster.definitions import Definitions
from batkube.cluster.schemas import Schema
from batkube.kernel.errors import Bug, InputError

KubernetesVersion = Literal["1.34", "1.35", "1.36", "1.37"]
"""The versions whose API can be served."""
KUBERNETES_VERSIONS: tuple[str, ...] = get_args(KubernetesVersion)
DEFAULT_KUBERNETES = "1.34"
#: Storage names of kinds that two groups serve (events.k8s.io is another view of core events) or that are not stored.
_SHARED_STORAGE = {"events.events.k8s.io": "events", "pods.metrics.k8s.io": "", "nodes.metrics.k8s.io": ""}
#: Served by metrics-server, an aggregated API server; its APIService comes after all other groups in discovery.
METRICS_GROUP = "metrics.k8s.io"
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


class ServedApi(NamedTuple):
    """The API that a server serves."""

    #: The version of Kubernetes.
    kubernetes: str = DEFAULT_KUBERNETES
    #: Versions of groups that are off by default or that Kubernetes has removed, such as `policy/v1beta1`.
    more_versions: Sequence[str] = ()


DEFAULT_API = ServedApi()


class SubResource(msgspec.Struct, frozen=True):
    """A subresource, such as `status` or `scale`."""

    name: str
    #: The kind of the request and response body; group and version are set where they differ from the resource's.
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


class Resource(msgspec.Struct, eq=False):
    """One kind of object in one version, as discovery describes it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    schema: Schema
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, SubResource] = {}
    #: Whether a CustomResourceDefinition defines it.
    custom: bool = False
    #: Custom resources: the JSON paths that field selectors may use, such as `.spec.color`.
    selectable_fields: tuple[str, ...] = ()
    #: The kind of a list of them; a CustomResourceDefinition may give it any name.
    list_kind: str = ""
    #: `v1`, `apps/v1`.
    api_version: str = ""
    #: The name of the resource in the store: `pods`, `deployments.apps`; "" when it is not stored.
    storage: str = ""
    #: The resource as error messages name it (Go's GroupResource): `pods`, `deployments.apps`, `events.events.k8s.io`.
    group_resource: str = ""
    #: The kind as validation errors name it: `Pod`, `Deployment.apps`.
    qualified_kind: str = ""
    #: For a removed or non-preferred version (`KindTable.serve`): the same resource in the preferred version.
    current: Resource | None = None

    def __post_init__(self) -> None:
        """Compute the names that every request needs, once."""
        suffix = f".{self.group}" if self.group else ""
        self.api_version = f"{self.group}/{self.version}" if self.group else self.version
        self.group_resource = self.plural + suffix
        self.qualified_kind = self.kind + suffix
        self.list_kind = self.list_kind or f"{self.kind}List"
        self.storage = _SHARED_STORAGE.get(self.group_resource, self.group_resource)


class Group(msgspec.Struct, frozen=True):
    """An API group and its versions, the preferred one first."""

    name: str
    versions: tuple[str, ...]

    @property
    def preferred(self) -> str:
        """The version that clients should use."""
        return self.versions[0]


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Return a sort key of versions: stable before beta before alpha, newer before older, the rest by name.

    Kubernetes: apimachinery/pkg/version/helpers.go, CompareKubeAwareVersionStrings.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, version)
    major, stability, minor = match.groups()
    return (-_STABILITY[stability], -int(major), -int(minor or 0), "")


class KindTable:
    """All resources that are served, and the definitions of their types."""

    def __init__(self, raw: dict[str, Any], *, metrics: bool = False) -> None:
        self._definitions = Definitions(raw["definitions"])
        #: The definition of each kind by `group/version/Kind`, including lists, options and subresources.
        self._kinds: dict[str, str] = dict(raw["kinds"])
        #: All kinds with a Go type by `group/version`, including versions that are not served.
        self._registered: dict[str, list[str]] = raw["registered"]
        #: The version of Kubernetes that the table was derived from.
        self.kubernetes_version: str = raw["kubernetes"]
        #: The built-in groups in the order of discovery, with the order of their versions.
        self._groups: dict[str, list[str]] = raw["groups"]
        #: Resources that are off by default, by group and version.
        self._optional: dict[tuple[str, str], list[_RawResource]] = {}
        #: Incremented by each addition and removal, so that callers can cache what they compute from the table.
        self.revision = 0
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str, str], Resource] = {}
        #: The number of resources served per group.
        self._served: Counter[str] = Counter()
        for entry in msgspec.convert(raw["resources"], list[_RawResource]):
            if entry.version not in self._groups[entry.group]:
                self._optional.setdefault((entry.group, entry.version), []).append(entry)
            elif metrics or entry.group != METRICS_GROUP:
                self.add(self._resource(entry))

    @classmethod
    def builtin(cls, kubernetes: str = DEFAULT_KUBERNETES, *, metrics: bool = False) -> KindTable:
        """Return a table of the built-in kinds of a version of Kubernetes, with or without those of metrics-server."""
        return cls(_builtin_table(kubernetes), metrics=metrics)

    def _resource(self, entry: _RawResource) -> Resource:
        return entry.resource(self.definition_of(entry.group, entry.version, entry.kind))

    def resource(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource that a path names, or None."""
        return self._by_path.get((group, version, plural))

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Return the resource of a kind, or None."""
        return self._by_kind.get((group, version, kind))

    def has_group(self, group: str) -> bool:
        """Return whether any resource of the group is served."""
        return self._served[group] > 0

    def definition(self, name: str) -> Schema:
        """Return the schema of any built-in struct by its OpenAPI name, such as `io.k8s.api.core.v1.PodSpec`."""
        return self._definitions.schema(name)

    def definition_of(self, group: str, version: str, kind: str) -> Schema:
        """Return the schema of any built-in kind; group `meta.k8s.io` has DeleteOptions, Status and others."""
        return self._definitions.schema(self._kinds[f"{group}/{version}/{kind}"])

    def has_kind(self, group: str, version: str, kind: str) -> bool:
        """Return whether kube-apiserver has a Go type for the kind, or a definition of it, served or not."""
        return (group, version, kind) in self._by_kind or kind in self._registered.get(f"{group}/{version}", ())

    def kinds_by_definition(self) -> dict[str, list[tuple[str, str, str]]]:
        """Return the kinds (group, version, kind) of each built-in definition."""
        kinds: dict[str, list[tuple[str, str, str]]] = {}
        for path, name in self._kinds.items():
            group, version, kind = path.split("/")
            kinds.setdefault(name, []).append(("" if group == "meta.k8s.io" else group, version, kind))
        return kinds

    def add(self, resource: Resource) -> None:
        """Serve `resource` from now on, replacing one with the same path."""
        path = (resource.group, resource.version, resource.plural)
        if path in self._by_path:
            self.remove(self._by_path[path])
        self._by_path[path] = resource
        self._served[resource.group] += 1
        self._by_kind[resource.group, resource.version, resource.kind] = resource
        self.revision += 1

    @property
    def optional_versions(self) -> list[str]:
        """The versions that are off by default and can be enabled, such as `example.com/v1beta1`, best first."""
        ranked = sorted(self._optional, key=lambda entry: (entry[0], version_rank(entry[1])))
        return [f"{group}/{version}" for group, version in ranked]

    def serve(self, group: str, version: str) -> None:
        """Serve a version that is off by default, or one that Kubernetes has removed (`serve_removed`).

        Objects are stored in the preferred version. All versions have the same fields.
        """
        if (group, version) not in self._optional:
            self.serve_removed(group, version)
            return
        served = next(entry for entry in self.groups() if entry.name == group).versions
        for entry in self._optional[group, version]:
            resources = (self.of_kind(group, other, entry.kind) for other in served)
            current = next((resource for resource in resources if resource is not None), None)
            self.add(msgspec.structs.replace(self._resource(entry), current=current))

    def serve_removed(self, group: str, version: str) -> None:
        """Serve a version that Kubernetes has removed, for old programs: the current fields under the old name."""
        match = next((entry for entry in self.groups() if entry.name == group), None)
        if match is None:
            remedy = "correct `needs` in the catalogue"
            raise InputError(f"{group}/{version}", problem="Kubernetes has no such group", remedy=remedy)
        if version in match.versions:
            return
        preferred = [entry for entry in self.resources() if (entry.group, entry.version) == (group, match.preferred)]
        for resource in preferred:
            for kind in (resource.kind, resource.list_kind):
                self._kinds[f"{group}/{version}/{kind}"] = self._kinds[f"{resource.api_version}/{kind}"]
            self.add(msgspec.structs.replace(resource, version=version, current=resource))

    def remove(self, resource: Resource) -> None:
        """Stop serving `resource`."""
        if self._by_path.pop((resource.group, resource.version, resource.plural), None) is not resource:
            raise Bug(f"removed {resource.group_resource} {resource.version}, which was not in the table")
        self._by_kind.pop((resource.group, resource.version, resource.kind), None)
        self._served[resource.group] -= 1
        if not self._served[resource.group]:
            del self._served[resource.group]
        self.revision += 1

    def resources(self) -> list[Resource]:
        """Return all resources in the order of discovery: by group, then version, then name."""
        ranks = {group.name: number for number, group in enumerate(self.groups())}
        versions = {group.name: group.versions for group in self.groups()}
        return sorted(
            self._by_path.values(),
            key=lambda resource: (
                ranks[resource.group],
                versions[resource.group].index(resource.version),
                resource.plural,
            ),
        )

    def groups(self) -> list[Group]:
        """Return the groups in the order of discovery: built-in, custom by name, metrics last.

        Kubernetes: the priorities of APIServices in pkg/controlplane/apiserver/aggregator.go and
        pkg/controlplane/controller/crdregistration/crdregistration_controller.go.
        """
        served: dict[str, list[str]] = {}
        for group, version, _ in self._by_path:
            versions = served.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        builtin = list(self._groups)
        customs = [name for name in served if name not in self._groups]
        order = {name: (name == METRICS_GROUP, number) for number, name in enumerate([*builtin, *sorted(customs)])}
        return [
            Group(name, tuple(self._sort_versions(name, served[name])))
            for name in sorted(served, key=lambda name: order[name])
        ]

    def _sort_versions(self, group: str, versions: list[str]) -> list[str]:
        """Return the versions of a group, the preferred one first."""
        builtin = [version for version in self._groups.get(group, []) if version in versions]
        return builtin + sorted((version for version in versions if version not in builtin), key=version_rank)


def validate_kubernetes(text: str, source: str | Path, at: str = "") -> str:
    """Return the minor version of Kubernetes whose API is served. Raise InputError for one that is not known."""
    version = ".".join(text.removeprefix("v").split(".")[:2])
    if version not in KUBERNETES_VERSIONS:
        problem = f"the API of Kubernetes {text} is not known"
        raise InputError(source, at=at, problem=problem, remedy=f"one of {', '.join(KUBERNETES_VERSIONS)}")
    return version


def validate_versions(
    texts: Sequence[str], source: str | Path, at: str = "", kubernetes: str = DEFAULT_KUBERNETES
) -> tuple[str, ...]:
    """Return API versions to enable, sorted and without duplicates. Raise InputError for one that is not optional."""
    optional = KindTable.builtin(kubernetes).optional_versions if texts else []
    for text in texts:
        if text not in optional:
            problem = f"{text!r} is not an API version of Kubernetes {kubernetes} that is off by default"
            raise InputError(source, at=at, problem=problem, remedy=f"one of {', '.join(optional)}")
    return tuple(sorted(dict.fromkeys(texts), key=optional.index))


class _RawResource(msgspec.Struct):
    """A resource as a file of `kind_tables` has it: without the schema, which is looked up by its kind."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, SubResource] = {}

    def resource(self, schema: Schema) -> Resource:
        """Return the resource with its schema."""
        return Resource(**{name: getattr(self, name) for name in self.__struct_fields__}, schema=schema)


@functools.cache
def _builtin_table(kubernetes: str) -> dict[str, Any]:
    """Return the table of a version of Kubernetes, read once per process."""
    path = Path(__file__).with_name("kind_tables") / f"{kubernetes}.json"
    raw: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    return raw
