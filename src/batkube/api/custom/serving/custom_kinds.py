"""The custom kinds that are served right now, as the definitions in the store make them.

The catalogue follows the store: when a definition appears, changes or goes, the table of kinds changes with it, so
that the next request sees it. It never writes; what the server does with a definition by itself is `lifecycle`.
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
"""The name of the kind of definitions in the store."""

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERBS_WHILE_TERMINATING = ("delete", "deletecollection", "get", "list", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")


class ServedDefinition(msgspec.Struct, frozen=True):
    """A definition as it is served."""

    object: KubeObject
    #: Every version of its kind, served or not.
    kinds: dict[str, CustomKind]
    storage_version: str

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted, so that no instance may be created any more."""
        return is_condition_true(self.object, TERMINATING)

    @property
    def storage_kind(self) -> CustomKind:
        """The kind in the version in which objects are stored."""
        return self.kinds[self.storage_version]

    def openapi_schema(self, version: str) -> dict[str, Any]:
        """Return the raw schema of a version, {} if it has none."""
        return self.kinds[version].raw_schema


class CustomKinds:
    """Keeps the table of kinds in step with the definitions in the store."""

    def __init__(
        self,
        table: KindTable,
        store: Store,
        notes: FidelityNotes | None = None,
        webhooks: ConversionWebhooks | None = None,
    ) -> None:
        """`notes` is told what definitions ask for and is not modelled; without `webhooks` none is called."""
        self._table = table
        self._notes = notes
        self._webhooks = webhooks
        self._metadata = table.definition(_OBJECT_META)
        #: The groups of built-in kinds. No request for one ever reaches a custom kind, as on the real server.
        self._built_in_groups = frozenset(group.name for group in table.groups())
        #: The definitions that are served, by name, which is also the name of their instances in the store.
        self._definitions: dict[str, ServedDefinition] = {}
        for definition in store.all(CUSTOM_RESOURCE_DEFINITIONS).values():
            self._update_definition(definition)
        store.subscribe(CUSTOM_RESOURCE_DEFINITIONS, self._on_definitions_changed)

    # Asking

    def is_in_built_in_group(self, name: str) -> bool:
        """Return whether a definition of this name is in a group of built-in kinds: then it has no instances.

        What is stored under its name, if anything, are objects of the built-in kind that it is called after.
        """
        return name.partition(".")[2] in self._built_in_groups

    def definition(self, resource: Resource) -> ServedDefinition:
        """Return the definition of a custom resource."""
        return self._definitions[resource.storage]

    def openapi_schema(self, resource: Resource) -> dict[str, Any]:
        """Return the raw schema of a custom resource."""
        return self.definition(resource).openapi_schema(resource.version)

    def definitions(self) -> list[ServedDefinition]:
        """Return all definitions that are served."""
        return list(self._definitions.values())

    def kind(self, resource: Resource) -> CustomKind:
        """Return what is done to objects of a custom resource."""
        return self._definitions[resource.storage].kinds[resource.version]

    def storage_resource(self, resource: Resource) -> Resource:
        """Return the resource in the version in which it is stored."""
        return self._definitions[resource.storage].storage_kind.resource

    def convert(self, value: KubeObject, target: Resource) -> KubeObject:
        """Return a stored object as a version shows it: with that version's name, and with today's schema."""
        definition = self._definitions.get(target.storage)
        if definition is None or target.version not in definition.kinds:
            # A watch may outlive the version, or the whole definition, that it was started for.
            return value
        if self._uses_webhook(definition):
            return self._convert_by_webhook([value], definition, target)[0]
        return definition.kinds[target.version].from_storage(value, definition.storage_kind)

    def prefetch_conversions(self, values: Sequence[KubeObject], target: Resource) -> None:
        """Have objects converted by one question that will be shown in a version, if a webhook does that."""
        definition = self._definitions.get(target.storage)
        if values and definition is not None and self._uses_webhook(definition):
            self._convert_by_webhook(values, definition, target)

    def prefetch_served_versions(self, value: KubeObject, resource: Resource) -> None:
        """Have an object that is to be stored converted into all versions that it may be shown in.

        Where that fails it is stored all the same; whoever reads it in such a version is told.
        """
        for kind in self._definitions[resource.storage].kinds.values():
            if kind.is_served:
                with contextlib.suppress(Failure):
                    self.prefetch_conversions([value], kind.resource)

    def convert_to_storage_version(self, value: KubeObject, resource: Resource) -> None:
        """Convert an object of a request, in place, prune and complete it, as a later read will find it."""
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
        """Return objects in another version, each as today's schema of its version has it."""
        assert self._webhooks is not None
        kind = definition.kinds[target.version]
        kinds = {each.resource.api_version: each for each in definition.kinds.values()}
        fresh = [
            kinds[each["apiVersion"]].with_current_schema(each) if each["apiVersion"] in kinds else each
            for each in values
        ]
        others = [each for each in fresh if each["apiVersion"] != target.api_version]
        answers = iter(self._webhooks.convert(definition.object, others, target.api_version) if others else ())
        shown = []
        for one in fresh:
            if one["apiVersion"] != target.api_version:
                one = next(answers)
                kind.prune_and_default(one, defaults=False)
            shown.append(one)
        return shown

    def printer(self, resource: Resource) -> Printer:
        """Return how objects of the kind are printed."""
        return self.kind(resource).printer

    def scale_paths(self, resource: Resource) -> ScalePaths:
        """Return where the replicas of a kind with the sub-resource `scale` are."""
        paths = self.kind(resource).scale_paths
        assert paths is not None, f"{resource.group_resource} cannot be scaled"
        return paths

    def replica_field_paths(self, resource: Resource) -> dict[str, tuple[str, ...] | None]:
        """Return where each version has its replicas, as the ownership of fields names it; None where it has none."""
        return {
            kind.resource.api_version: None
            if kind.scale_paths is None
            else tuple(f"f:{n}" for n in kind.scale_paths.spec_replicas)
            for kind in self.definition(resource).kinds.values()
        }

    def warnings(self, resource: Resource) -> list[str]:
        """Return what clients of a deprecated version are told."""
        warning = self.kind(resource).deprecation_warning
        return [warning] if warning else []

    def discovery_verbs(self, resource: Resource) -> tuple[str, ...]:
        """Return the verbs that discovery tells: fewer while the definition is being deleted."""
        return _VERBS_WHILE_TERMINATING if self.definition(resource).is_terminating else resource.verbs

    # Following the store

    def _on_definitions_changed(self, batch: Batch, now: Instant) -> None:
        for definition in batch.objects:
            if batch.type is DELETED:
                self._remove_definition(str(definition["metadata"]["name"]))
            else:
                self._update_definition(definition)

    def _update_definition(self, definition: KubeObject) -> None:
        name = definition["metadata"]["name"]
        known = self._definitions.get(name)
        if not is_served(definition) or self.is_in_built_in_group(name):
            self._remove_definition(name)
        elif known is not None and _has_same_kinds(known.object, definition):
            self._definitions[name] = msgspec.structs.replace(known, object=definition)
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
        known = self._definitions.pop(name, None)
        if known is not None:
            for kind in known.kinds.values():
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
                # The generation counts changes of the spec: at 1 there was none.
                schema_is_original=definition["metadata"].get("generation", 1) == 1,
            )
            for version in spec["versions"]
        }
        return ServedDefinition(definition, kinds, storage_version(spec))


def _has_same_kinds(known: KubeObject, definition: KubeObject) -> bool:
    """Return whether two states of a definition make the same kinds."""
    return bool(
        known["spec"] == definition["spec"]
        and known["status"]["acceptedNames"] == definition["status"]["acceptedNames"]
        and known["metadata"].get("uid") == definition["metadata"].get("uid")
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
