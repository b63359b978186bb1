"""The kinds that are currently served, with their behaviour, encoding, scale and warnings."""

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
from batkube.api.verbs.kinds.object_encoding import ObjectEncoder, unconverted
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject

#: Storage versions that differ from the version of the request, by storage name.
_STORED_VERSIONS = {
    "events": ("", "v1"),
    "horizontalpodautoscalers.autoscaling": ("autoscaling", "v2"),
}

#: Deprecated versions (Kubernetes: APILifecycleDeprecated in zz_generated.prerelease-lifecycle.go).
_DEPRECATION_WARNINGS = {
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
}

_JOB_DELETION_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class ServedKinds:
    """All served kinds, built-in and custom."""

    def __init__(
        self,
        table: KindTable,
        custom: CustomKinds,
        built_in_behaviour: BuiltInBehaviour,
        definition_behaviour: BuiltInBehaviour,
        custom_behaviour: CustomBehaviour,
        describe_columns: Callable[[str], ColumnDescriptions],
    ) -> None:
        self.kind_table = table
        self._built_in_behaviour = built_in_behaviour
        self._definition_behaviour = definition_behaviour
        self._custom_behaviour = custom_behaviour
        self._custom_kinds = custom
        self._describe_columns = functools.cache(describe_columns)
        pods = table.resource("", "v1", "pods")
        assert pods is not None
        self.pods = pods
        self.scale_resource = self.resource_of_kind("autoscaling", "v1", "Scale")
        self.delete_options_schema = table.definition_of("meta.k8s.io", "v1", "DeleteOptions")
        self.status_schema = table.definition_of("meta.k8s.io", "v1", "Status")
        self._encoders: dict[tuple[Resource, ResponseForm, str], ObjectEncoder] = {}
        #: The revision of the table when `_encoders` was last emptied.
        self._encoders_revision = table.revision

    # Lookup

    def has_group(self, group: str) -> bool:
        """Return whether any resource of the group is served."""
        return self.kind_table.has_group(group)

    def resource(self, route: Route) -> Resource | None:
        """Return the resource that a path names, or None if the path does not exist."""
        resource = self.kind_table.resource(route.group, route.version, route.resource)
        if resource is None or route.extra_segments or (route.namespaced and not resource.namespaced):
            return None
        if route.name and resource.namespaced and not route.namespaced:
            return None
        if route.subresource and route.subresource not in resource.subresources:
            return None
        return resource

    def custom_group(self, route: Route) -> Resource | None:
        """Return the custom resource of a path, or else any resource of its group; None if the group is not custom."""
        resource = self.kind_table.resource(route.group, route.version, route.resource)
        if resource is not None:
            return resource if resource.custom else None
        return next((each for each in self.kind_table.resources() if each.custom and each.group == route.group), None)

    def stored_as(self, storage: str) -> Resource | None:
        """Return the resource with this name in the store, in its storage version."""
        plural, _, group = storage.partition(".")
        versions = next((each.versions for each in self.kind_table.groups() if each.name == group), ())
        resource = next(
            (res for version in versions if (res := self.kind_table.resource(group, version, plural))), None
        )
        return None if resource is None else self.storage_version(resource)

    def resource_of_kind(self, group: str, version: str, kind: str) -> Resource:
        """Return the resource of a kind; create one for a kind without paths, such as Scale."""
        resource = self.kind_table.of_kind(group, version, kind)
        if resource is not None:
            return resource
        schema = self.kind_table.definition_of(group, version, kind)
        return Resource(group, version, kind, kind.lower() + "s", kind.lower(), True, (), schema)

    def is_known_kind(self, group: str, version: str, kind: str) -> bool:
        """Return whether the kind exists."""
        return self.kind_table.has_kind(group, version, kind)

    def schema_of(self, value: KubeObject) -> Schema | None:
        """Return the schema of a built-in object by its apiVersion and kind."""
        group, _, version = value["apiVersion"].rpartition("/")
        if value["kind"] == "Status":
            group = "meta.k8s.io"
        return self.kind_table.definition_of(group, version, value["kind"])

    # Behaviour and versions

    def behaviour(self, resource: Resource) -> Behaviour:
        """Return the behaviour of the kind."""
        if resource.custom:
            return self._custom_behaviour
        return (
            self._definition_behaviour if resource.storage == CUSTOM_RESOURCE_DEFINITIONS else self._built_in_behaviour
        )

    def storage_version(self, resource: Resource) -> Resource:
        """Return the resource in its storage version."""
        if resource.custom:
            return self._custom_kinds.storage_resource(resource)
        if resource.current is not None:
            return self.storage_version(resource.current)
        group_version = _STORED_VERSIONS.get(resource.storage)
        if group_version is None:
            return resource
        stored = self.kind_table.resource(*group_version, resource.plural)
        assert stored is not None
        return stored

    def in_version(self, resource: Resource, value: KubeObject) -> KubeObject:
        """Convert a stored object to the version of `resource`; custom objects get their current schema's defaults."""
        if resource.custom:
            return self._custom_kinds.convert(value, resource)
        stored = self.storage_version(resource)
        return value if stored is resource else convert_version(value, stored, resource)

    def prepare_conversion(self, resource: Resource, values: Sequence[KubeObject]) -> None:
        """Convert custom objects to the version of `resource` in advance, with as few webhook calls as possible."""
        if resource.custom:
            self._custom_kinds.prefetch_conversions(values, resource)

    def converter(self, resource: Resource) -> Convert | None:
        """Return a function that converts objects of the kind to another apiVersion, for managed fields."""
        if not resource.custom and resource.storage not in _STORED_VERSIONS and resource.current is None:
            return None

        def convert(value: KubeObject, api_version: str) -> tuple[KubeObject, Schema] | None:
            group, _, version = api_version.rpartition("/")
            target = self.kind_table.of_kind(group, version, resource.kind)
            if target is None or target.group != resource.group:
                return None
            if resource.custom:
                return self._custom_kinds.convert(value, target), target.schema
            group, _, version = value.get("apiVersion", resource.api_version).rpartition("/")
            source = self.kind_table.of_kind(group, version, resource.kind) or resource
            return (value if source is target else convert_version(value, source, target)), target.schema

        return convert

    def scale_ownership(self, resource: Resource, live: KubeObject) -> ScaleOwnership:
        """Return the ownership of the replicas field of an object."""
        paths = self._custom_kinds.replica_field_paths(resource) if resource.custom else None
        return ScaleOwnership(live, resource, self.scale_resource, paths)

    def encoder(self, resource: Resource, form: ResponseForm, include_object: str) -> ObjectEncoder:
        """Return the encoder of objects of the kind in a negotiated form."""
        key = (resource, form, include_object)
        encoder = self._encoders.get(key)
        if encoder is None:
            self._evict_encoders()
            printer = self._custom_kinds.printer(resource) if resource.custom else printer_of(resource)
            if self.storage_version(resource) is resource and not resource.custom:
                convert = unconverted
            else:
                convert = lambda value: self.in_version(resource, value)  # noqa: E731 - one line says it
            printer = self._with_column_descriptions(printer, resource.storage, form)
            encoder = self._encoders[key] = ObjectEncoder(
                resource, form, include_object, convert, printer, self.kind_table
            )
        return encoder

    def _with_column_descriptions(self, printer: Printer, storage: str, form: ResponseForm) -> Printer:
        """Return a printer with column descriptions, which are loaded when a Table is first requested."""
        if form.transform != TABLE:
            return printer
        return with_descriptions(printer, storage, self._describe_columns(self.kind_table.kubernetes_version))

    def _evict_encoders(self) -> None:
        """Empty the cache if kinds have changed, or if clients have requested very many different forms."""
        if len(self._encoders) > 1000 or self._encoders_revision != self.kind_table.revision:
            self._encoders.clear()
            self._encoders_revision = self.kind_table.revision

    def scale_encoder(self, resource: Resource, form: ResponseForm, include_object: str) -> ObjectEncoder:
        """Return the encoder of the Scales of a kind in a negotiated form."""
        printer = self._with_column_descriptions(scale_printer(resource), self.scale_resource.storage, form)
        return ObjectEncoder(self.scale_resource, form, include_object, unconverted, printer, self.kind_table)

    def scale(self, resource: Resource) -> ScaleConverter:
        """Return the converter between objects of the kind and their Scales."""
        return (
            CustomScaleConverter(self._custom_kinds.scale_paths(resource))
            if resource.custom
            else ScaleConverter(resource)
        )

    def allows_create_on_update(self, resource: Resource) -> bool:
        """Return whether a PUT to a name that does not exist creates the object."""
        return not resource.custom and strategy_of(resource.storage).allow_create_on_update

    def warnings(self, resource: Resource, route: Route) -> list[str]:
        """Return the deprecation warnings of the resource."""
        if resource.custom:
            return self._custom_kinds.warnings(resource)
        text = _DEPRECATION_WARNINGS.get((resource.group, resource.version, resource.kind))
        return [text] if text else []

    def deletion_warnings(self, resource: Resource, options: DeleteOptions) -> list[str]:
        """Return the warnings of a deletion."""
        # Kubernetes: pkg/registry/batch/job/strategy.go and storage/storage.go, Delete.
        is_explicit = options.propagation is not None or options.orphan is not None
        return [_JOB_DELETION_WARNING] if resource.storage == "jobs.batch" and not is_explicit else []
