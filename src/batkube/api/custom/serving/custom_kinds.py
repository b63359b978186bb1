"""The custom kinds that are served, as defined by the CustomResourceDefinitions in the store.

It subscribes to the store: when a definition is added, modified or deleted, the table of kinds changes with it, so that
the next request uses it. It never writes; `lifecycle` does the server's own writes to definitions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from batkube.api.custom.instances.custom_kind import CustomKind
from batkube.api.custom.schemas.shapes import custom_object_schema
from batkube.api.custom.schemas.structural import StructuralSchema, parse_structural
from batkube.api.custom.serving.conditions import TERMINATING, is_condition_true, is_served
from batkube.api.custom.serving.conversion_webhooks import ConversionWebhooks, is_converted_by_webhook
from batkube.api.custom.serving.fidelity_notes import note_unsupported_features
from batkube.api.custom.serving.versions import deprecation_warning, storage_version
from batkube.api.groups.autoscaling.scales import ScalePaths
from batkube.api.printing.printers import Printer
from batkube.api.requests.statuses import Failure
from batkube.cluster.kinds import KindTable, Resource, SubResource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import DELETED, Batch, KubeObject, Store
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import Instant

CUSTOM_RESOURCE_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
"""The storage name of CustomResourceDefinitions."""

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERBS_WHILE_TERMINATING = ("delete", "deletecollection", "get", "list", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")


class ServedDefinition(msgspec.Struct, frozen=True):
    """A definition whose kind is served."""

    object: KubeObject
    #: All versions of its kind, served or not.
    kinds: dict[str, CustomKind]
    storage_version: str

    @property
    def is_terminating(self) -> bool:
        """Whether the definition is being deleted: no instance can be created any more."""
        return is_condition_true(self.object, TERMINATING)

    @property
    def storage_kind(self) -> CustomKind:
        """The kind in the storage version."""
        return self.kinds[self.storage_version]

    def openapi_schema(self, version: str) -> dict[str, Any]:
        """Return the raw schema of a version, {} if it has none."""
        return self.kinds[version].raw_schema


class CustomKinds:
    """Keeps the table of kinds in sync with the definitions in the store."""

    def __init__(
        self,
        table: KindTable,
        store: Store,
        notes: FidelityNotes | None = None,
        webhooks: ConversionWebhooks | None = None,
    ) -> None:
        """`notes` records unsupported features of definitions; without `webhooks` none is called."""
        self._table = table
        self._notes = notes
        self._webhooks = webhooks
        self._metadata = table.definition(_OBJECT_META)
        #: The groups of built-in kinds. As in kube-apiserver, requests for them never reach a custom kind.
        self._built_in_groups = frozenset(group.name for group in table.groups())
        #: The served definitions by name, which is also the storage name of their instances.
        self._definitions: dict[str, ServedDefinition] = {}
        for definition in store.all(CUSTOM_RESOURCE_DEFINITIONS).values():
            self._update_definition(definition)
        store.subscribe(CUSTOM_RESOURCE_DEFINITIONS, self._on_definitions_changed)

    # Queries

    def is_in_built_in_group(self, name: str) -> bool:
        """Return whether the group of this definition name is built-in: then the definition has no instances.

        Objects stored under this name, if any, are of the built-in kind of the same name.
        """
        return name.partition(".")[2] in self._built_in_groups

    def definition(self, resource: Resource) -> ServedDefinition:
        """Return the definition of a custom resource."""
        return self._definitions[resource.storage]

    def openapi_schema(self, resource: Resource) -> dict[str, Any]:
        """Return the raw schema of a custom resource's version."""
        return self.definition(resource).openapi_schema(resource.version)

    def definitions(self) -> list[ServedDefinition]:
        """Return all served definitions."""
        return list(self._definitions.values())

    def kind(self, resource: Resource) -> CustomKind:
        """Return the kind of a custom resource."""
        return self._definitions[resource.storage].kinds[resource.version]

    def storage_resource(self, resource: Resource) -> Resource:
        """Return the resource in its storage version."""
        return self._definitions[resource.storage].storage_kind.resource

    def convert(self, value: KubeObject, target: Resource) -> KubeObject:
        """Convert a stored object to the version of `target`, with its current schema."""
        definition = self._definitions.get(target.storage)
        if definition is None or target.version not in definition.kinds:
            # A watch may outlive the version, or even the definition, for which it was started.
            return value
        if self._uses_webhook(definition):
            return self._convert_by_webhook([value], definition, target)[0]
        return definition.kinds[target.version].from_storage(value, definition.storage_kind)

    def prefetch_conversions(self, values: Sequence[KubeObject], target: Resource) -> None:
        """Convert objects to a version in a single webhook request, if the kind has a webhook."""
        definition = self._definitions.get(target.storage)
        if values and definition is not None and self._uses_webhook(definition):
            self._convert_by_webhook(values, definition, target)

    def prefetch_served_versions(self, value: KubeObject, resource: Resource) -> None:
        """Convert an object that is about to be stored to all served versions.

        If a conversion fails, the object is stored nevertheless; the error is returned to clients that read that
        version.
        """
        for kind in self._definitions[resource.storage].kinds.values():
            if kind.is_served:
                with contextlib.suppress(Failure):
                    self.prefetch_conversions([value], kind.resource)

    def convert_to_storage_version(self, value: KubeObject, resource: Resource) -> None:
        """Convert a request's object in place to the storage version; prune and default it as a later read will."""
        definition = self.definition(resource)
        stored = definition.storage_kind
        if stored.resource is resource:
            return
        if self._uses_webhook(definition):
            whole = self._convert_by_webhook([value], definition, stored.resource)[0]
            value.clear()
            value.update(whole)
        value["apiVersion"] = stored.resource.api_version
        stored.prune_and_default(value)

    def _uses_webhook(self, definition: ServedDefinition) -> bool:
        return self._webhooks is not None and is_converted_by_webhook(definition.object)

    def _convert_by_webhook(
        self, values: Sequence[KubeObject], definition: ServedDefinition, target: Resource
    ) -> list[KubeObject]:
        """Convert objects by the webhook; prune and default each with the current schema of its version."""
        assert self._webhooks is not None
        kind = definition.kinds[target.version]
        kinds = {item.resource.api_version: item for item in definition.kinds.values()}
        current = [
            kinds[item["apiVersion"]].with_current_schema(item) if item["apiVersion"] in kinds else item
            for item in values
        ]
        foreign = [item for item in current if item["apiVersion"] != target.api_version]
        answers = iter(self._webhooks.convert(definition.object, foreign, target.api_version) if foreign else ())
        results = []
        for item in current:
            if item["apiVersion"] == target.api_version:
                results.append(item)
            else:
                converted = next(answers)
                kind.prune_and_default(converted, defaults=False)
                results.append(converted)
        return results

    def printer(self, resource: Resource) -> Printer:
        """Return the printer of the kind's tables."""
        return self.kind(resource).printer

    def scale_paths(self, resource: Resource) -> ScalePaths:
        """Return the replica paths of a kind with the subresource `scale`."""
        paths = self.kind(resource).scale_paths
        assert paths is not None, f"{resource.group_resource} cannot be scaled"
        return paths

    def replica_field_paths(self, resource: Resource) -> dict[str, tuple[str, ...] | None]:
        """Return the replica path of each version as an ownership path; None for versions without `scale`."""
        return {
            kind.resource.api_version: None
            if kind.scale_paths is None
            else tuple(f"f:{n}" for n in kind.scale_paths.spec_replicas)
            for kind in self.definition(resource).kinds.values()
        }

    def warnings(self, resource: Resource) -> list[str]:
        """Return the warnings for clients of a deprecated version."""
        warning = self.kind(resource).deprecation_warning
        return [warning] if warning else []

    def discovery_verbs(self, resource: Resource) -> tuple[str, ...]:
        """Return the verbs that discovery reports: fewer while the definition is being deleted."""
        return _VERBS_WHILE_TERMINATING if self.definition(resource).is_terminating else resource.verbs

    # Subscription to the store

    def _on_definitions_changed(self, batch: Batch, now: Instant) -> None:
        for definition in batch.objects:
            if batch.type is DELETED:
                self._remove_definition(str(definition["metadata"]["name"]))
            else:
                self._update_definition(definition)

    def _update_definition(self, definition: KubeObject) -> None:
        name = definition["metadata"]["name"]
        current = self._definitions.get(name)
        if not is_served(definition) or self.is_in_built_in_group(name):
            self._remove_definition(name)
        elif current is not None and _has_same_kinds(current.object, definition):
            self._definitions[name] = msgspec.structs.replace(current, object=definition)
        else:
            self._remove_definition(name)
            self._definitions[name] = served = self._serve(definition)
            for kind in served.kinds.values():
                if kind.is_served:
                    self._table.add(kind.resource)
            if self._notes is not None:
                note_unsupported_features(
                    definition, served.kinds.values(), self._notes, webhooks=self._webhooks is not None
                )

    def _remove_definition(self, name: str) -> None:
        removed = self._definitions.pop(name, None)
        if removed is not None:
            for kind in removed.kinds.values():
                if kind.is_served:
                    self._table.remove(kind.resource)

    def _serve(self, definition: KubeObject) -> ServedDefinition:
        spec = definition["spec"]
        schemas = {version["name"]: _schema_of(version) for version in spec["versions"]}
        kinds = {
            version["name"]: CustomKind(
                _resource(definition, version, custom_object_schema(schemas[version["name"]], self._metadata)),
                schemas,
                self._metadata,
                version,
                deprecation_warning(spec, version),
                # The generation counts changes of the spec; at 1 the spec has never changed.
                schema_is_original=definition["metadata"].get("generation", 1) == 1,
            )
            for version in spec["versions"]
        }
        return ServedDefinition(definition, kinds, storage_version(spec))


def _has_same_kinds(served: KubeObject, definition: KubeObject) -> bool:
    """Return whether two states of a definition define the same kinds."""
    return bool(
        served["spec"] == definition["spec"]
        and served["status"]["acceptedNames"] == definition["status"]["acceptedNames"]
        and served["metadata"].get("uid") == definition["metadata"].get("uid")
    )


def _schema_of(version: dict[str, Any]) -> StructuralSchema | None:
    raw = (version.get("schema") or {}).get("openAPIV3Schema")
    return None if raw is None else parse_structural(raw)


def _resource(definition: KubeObject, version: dict[str, Any], shape: Schema) -> Resource:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    section, subresources = version.get("subresources") or {}, {}
    if section.get("status") is not None:
        subresources["status"] = SubResource("status", names["kind"], _SUBRESOURCE_VERBS)
    if section.get("scale") is not None:
        subresources["scale"] = SubResource("scale", "Scale", _SUBRESOURCE_VERBS, "autoscaling", "v1")
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        namespaced=spec["scope"] == "Namespaced",
        verbs=VERBS,
        schema=shape,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources,
        custom=True,
        selectable_fields=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
        list_kind=names["listKind"],
    )
