"""The kinds that are served now, and what is special about each: its behaviour, columns, scale and warnings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from batkube.api.custom.instances.printer_columns import scale_printer
from batkube.api.custom.serving.behaviour import CustomBehaviour
from batkube.api.custom.serving.custom_kinds import CUSTOM_RESOURCE_DEFINITIONS, CustomKinds
from batkube.api.groups.autoscaling.scales import CustomScaleConverter, ScaleConverter
from batkube.api.groups.scheme.conversion import convert_version
from batkube.api.groups.scheme.printing import printer_of
from batkube.api.groups.scheme.strategies import strategy_of
from batkube.api.managed_fields.scale_ownership import ScaleOwnership
from batkube.api.managed_fields.updates import Convert
from batkube.api.printing.columns import ColumnDescriptions, with_descriptions
from batkube.api.printing.printers import Printer
from batkube.api.requests.negotiation import TABLE, ResponseForm
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.routing import Route
from batkube.api.requests.writes import Behaviour
from batkube.api.verbs.kinds.behaviours import BuiltInBehaviour
from batkube.api.verbs.kinds.object_encoding import ObjectEncoder
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject

#: The version in which a kind of several versions is stored, where it is not the preferred one.
_STORED_VERSIONS = {
    "events": ("", "v1"),
    "horizontalpodautoscalers.autoscaling": ("autoscaling", "v2"),
}

#: Versions that clients are warned of (Kubernetes: APILifecycleDeprecated of the types).
_DEPRECATION_WARNINGS = {
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
}

_JOB_DELETION_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class ServedKinds:
    """What is served, built in and custom."""

    def __init__(
        self,
        table: KindTable,
        custom: CustomKinds,
        builtin: BuiltInBehaviour,
        of_definitions: BuiltInBehaviour,
        of_custom: CustomBehaviour,
        describe_columns: Callable[[str], ColumnDescriptions],
    ) -> None:
        self.kind_table = table
        self._built_in_behaviour = builtin
        self._definition_behaviour = of_definitions
        self._custom_behaviour = of_custom
        self._custom_kinds = custom
        self._describe_columns = functools.cache(describe_columns)
        pods = table.resource("", "v1", "pods")
        assert pods is not None
        self.pods = pods
        self.scale_resource = self.resource_of_kind("autoscaling", "v1", "Scale")
        self.delete_options_schema = table.definition_of("meta.k8s.io", "v1", "DeleteOptions")
        self.status_schema = table.definition_of("meta.k8s.io", "v1", "Status")
        self._encoders: dict[tuple[Resource, ResponseForm, str], ObjectEncoder] = {}
        #: Of the table, when the first of them was made.
        self._encoders_revision = table.revision

    # Finding

    def has_group(self, group: str) -> bool:
        """Return whether any resource of the group is served."""
        return self.kind_table.has_group(group)

    def resource(self, route: Route) -> Resource | None:
        """Return the resource that a path names, if there is one at exactly that path."""
        resource = self.kind_table.resource(route.group, route.version, route.resource)
        if resource is None or route.extra_segments or (route.namespaced and not resource.namespaced):
            return None
        if route.name and resource.namespaced and not route.namespaced:
            return None
        if route.subresource and route.subresource not in resource.subresources:
            return None
        return resource

    def custom_group(self, route: Route) -> Resource | None:
        """Return a custom resource of the group of a path, the one it names if there is one; None if it has none."""
        named = self.kind_table.resource(route.group, route.version, route.resource)
        if named is not None:
            return named if named.custom else None
        return next((each for each in self.kind_table.resources() if each.custom and each.group == route.group), None)

    def stored_as(self, storage: str) -> Resource | None:
        """Return the resource whose objects have this name in the store, in the stored version."""
        plural, _, group = storage.partition(".")
        versions = next((each.versions for each in self.kind_table.groups() if each.name == group), ())
        resource = next(
            (res for version in versions if (res := self.kind_table.resource(group, version, plural))), None
        )
        return None if resource is None else self.storage_version(resource)

    def resource_of_kind(self, group: str, version: str, kind: str) -> Resource:
        """Return something like a resource for a kind that has no path of its own, such as Scale."""
        resource = self.kind_table.of_kind(group, version, kind)
        if resource is not None:
            return resource
        schema = self.kind_table.definition_of(group, version, kind)
        return Resource(group, version, kind, kind.lower() + "s", kind.lower(), True, (), schema)

    def is_known_kind(self, group: str, version: str, kind: str) -> bool:
        """Return whether there is such a kind at all."""
        return self.kind_table.has_kind(group, version, kind)

    def schema_of(self, value: KubeObject) -> Schema | None:
        """Return the schema of any built-in object by its apiVersion and kind."""
        group, _, version = value["apiVersion"].rpartition("/")
        if value["kind"] == "Status":
            group = "meta.k8s.io"
        return self.kind_table.definition_of(group, version, value["kind"])

    # What is special

    def behaviour(self, resource: Resource) -> Behaviour:
        """Return what the kind adds to the verbs."""
        if resource.custom:
            return self._custom_behaviour
        return (
            self._definition_behaviour if resource.storage == CUSTOM_RESOURCE_DEFINITIONS else self._built_in_behaviour
        )

    def storage_version(self, resource: Resource) -> Resource:
        """Return the resource in the version in which it is stored."""
        if resource.custom:
            return self._custom_kinds.storage_resource(resource)
        if resource.current is not None:
            return self.storage_version(resource.current)
        elsewhere = _STORED_VERSIONS.get(resource.storage)
        if elsewhere is None:
            return resource
        stored = self.kind_table.resource(*elsewhere, resource.plural)
        assert stored is not None
        return stored

    def in_version(self, resource: Resource, value: KubeObject) -> KubeObject:
        """Return a stored object in the version asked for, a custom one as today's schema of its kind has it."""
        if resource.custom:
            return self._custom_kinds.convert(value, resource)
        stored = self.storage_version(resource)
        return value if stored is resource else convert_version(value, stored, resource)

    def prepare_conversion(self, resource: Resource, values: Sequence[KubeObject]) -> None:
        """See that stored objects can be shown in the version of `resource`, whomever that needs to be asked of."""
        if resource.custom:
            self._custom_kinds.prefetch_conversions(values, resource)

    def converter(self, resource: Resource) -> Convert | None:
        """Return how objects of the kind are shown in another apiVersion, for the ownership of fields."""
        if not resource.custom and resource.storage not in _STORED_VERSIONS and resource.current is None:
            return None

        def elsewhere(value: KubeObject, api_version: str) -> tuple[KubeObject, Schema] | None:
            group, _, version = api_version.rpartition("/")
            target = self.kind_table.of_kind(group, version, resource.kind)
            if target is None or target.group != resource.group:
                return None
            if resource.custom:
                return self._custom_kinds.convert(value, target), target.schema
            group, _, version = value.get("apiVersion", resource.api_version).rpartition("/")
            source = self.kind_table.of_kind(group, version, resource.kind) or resource
            return (value if source is target else convert_version(value, source, target)), target.schema

        return elsewhere

    def scale_ownership(self, resource: Resource, live: KubeObject) -> ScaleOwnership:
        """Return who owns the replicas of an object."""
        paths = self._custom_kinds.replica_field_paths(resource) if resource.custom else None
        return ScaleOwnership(live, resource, self.scale_resource, paths)

    def encoder(self, resource: Resource, form: ResponseForm, include_object: str) -> ObjectEncoder:
        """Return how objects of the kind are shown in one form."""
        key = (resource, form, include_object)
        view = self._encoders.get(key)
        if view is None:
            self._evict_encoders()
            printer = self._custom_kinds.printer(resource) if resource.custom else printer_of(resource)
            if self.storage_version(resource) is resource and not resource.custom:
                convert = _identity
            else:
                convert = lambda value: self.in_version(resource, value)  # noqa: E731 - one line says it
            printer = self._with_column_descriptions(printer, resource.storage, form)
            view = self._encoders[key] = ObjectEncoder(
                resource, form, include_object, convert, printer, self.kind_table
            )
        return view

    def _with_column_descriptions(self, printer: Printer, storage: str, form: ResponseForm) -> Printer:
        """Return a printer with words for its columns; they are looked for when somebody first asks for a Table."""
        if form.transform != TABLE:
            return printer
        return with_descriptions(printer, storage, self._describe_columns(self.kind_table.kubernetes_version))

    def _evict_encoders(self) -> None:
        """Forget all when kinds have changed, which would stay otherwise; or when somebody asks for very many forms."""
        if len(self._encoders) > 1000 or self._encoders_revision != self.kind_table.revision:
            self._encoders.clear()
            self._encoders_revision = self.kind_table.revision

    def scale_encoder(self, resource: Resource, form: ResponseForm, include_object: str) -> ObjectEncoder:
        """Return how the Scales of a kind are shown in one form."""
        printer = self._with_column_descriptions(scale_printer(resource), self.scale_resource.storage, form)
        return ObjectEncoder(self.scale_resource, form, include_object, _identity, printer, self.kind_table)

    def scale(self, resource: Resource) -> ScaleConverter:
        """Return how the replicas of a kind are read and written."""
        return (
            CustomScaleConverter(self._custom_kinds.scale_paths(resource))
            if resource.custom
            else ScaleConverter(resource)
        )

    def allows_create_on_update(self, resource: Resource) -> bool:
        """Return whether a PUT to a name that does not exist creates the object."""
        return not resource.custom and strategy_of(resource.storage).allow_create_on_update

    def warnings(self, resource: Resource, route: Route) -> list[str]:
        """Return what clients are told about the version they use."""
        if resource.custom:
            return self._custom_kinds.warnings(resource)
        text = _DEPRECATION_WARNINGS.get((resource.group, resource.version, resource.kind))
        return [text] if text else []

    def deletion_warnings(self, resource: Resource, options: DeleteOptions) -> list[str]:
        """Return what clients are told about a deletion."""
        silent = options.propagation is not None or options.orphan is not None
        return [_JOB_DELETION_WARNING] if resource.storage == "jobs.batch" and not silent else []


def _identity(value: KubeObject) -> KubeObject:
    return value
