"""From a definition in the store to a served kind, and back."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.api.custom.definitions.strategy import (
    prepare_definition_create,
    prepare_definition_update,
    set_definition_defaults,
)
from batkube.api.custom.serving.behaviour import CustomBehaviour
from batkube.api.custom.serving.conditions import CLEANUP_FINALIZER
from batkube.api.custom.serving.custom_kinds import CUSTOM_RESOURCE_DEFINITIONS, CustomKinds
from batkube.api.custom.serving.lifecycle import DefinitionLifecycle
from batkube.api.requests.options import WriteOptions
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import authenticated_user
from batkube.api.requests.writes import Write
from batkube.cluster.kinds import KindTable
from batkube.cluster.store import Batch, Key, KubeObject, Store
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import Instant

NOW = Instant(0)
FREE_FORM = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Cluster:
    """A store with a catalogue of custom kinds and their lifecycle."""

    def __init__(self) -> None:
        self.store = Store()
        self.table = KindTable.builtin()
        self.notes = FidelityNotes()
        self.customs = CustomKinds(self.table, self.store, self.notes)
        self.behaviour = CustomBehaviour(self.customs, lambda write, value, old: None)
        resource = self.table.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert resource is not None
        self.lifecycle = DefinitionLifecycle(self.store, resource, self._delete_all, self.customs.is_in_built_in_group)

    def _delete_all(self, storage: str, now: Instant) -> None:
        self.store.delete(
            storage, [key for key, value in self.store.all(storage).items() if not value.get("held")], now
        )

    def define(self, plural: str = "widgets", **spec: Any) -> Key:  # noqa: ANN401
        names = {"plural": plural, "kind": plural[:-1].title(), **spec.pop("names", {})}
        versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": FREE_FORM}}]
        value = {
            "metadata": {"name": f"{plural}.example.com", "uid": plural},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions, **spec},
        }
        set_definition_defaults(value)
        prepare_definition_create(value)
        key = Key(f"{plural}.example.com")
        self.store.create(CUSTOM_RESOURCE_DEFINITIONS, [key], [value], NOW)
        self.lifecycle.reconcile(NOW)
        return key

    def change(self, key: Key, **spec: Any) -> None:  # noqa: ANN401
        old = self.definition(key)
        new = {**old, "metadata": dict(old["metadata"]), "spec": {**old["spec"], **spec}}
        prepare_definition_update(new, old)
        self.store.replace(CUSTOM_RESOURCE_DEFINITIONS, [key], [new], NOW)
        self.lifecycle.reconcile(NOW)

    def delete(self, key: Key) -> None:
        self.lifecycle.mark_for_deletion(key, NOW)
        self.lifecycle.reconcile(NOW)

    def definition(self, key: Key) -> KubeObject:
        stored = self.store.get(CUSTOM_RESOURCE_DEFINITIONS, key)
        assert stored is not None
        return stored

    def conditions(self, key: Key) -> dict[str, tuple[str, str]]:
        status = self.definition(key)["status"]
        return {condition["type"]: (condition["status"], condition["reason"]) for condition in status["conditions"]}

    def serves(self, plural: str, version: str = "v1") -> bool:
        return self.table.resource("example.com", version, plural) is not None


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_definition_is_established_in_the_steps_of_the_upstream_controllers(cluster: Cluster) -> None:
    seen: list[list[str]] = []

    def watch(batch: Batch, now: Instant) -> None:
        for value in batch.objects:
            conditions = value["status"]["conditions"] or []
            seen.append([f"{condition['type']}={condition['status']}" for condition in conditions])

    cluster.store.subscribe(CUSTOM_RESOURCE_DEFINITIONS, watch)

    key = cluster.define()

    assert seen == [
        [],
        ["NamesAccepted=True", "Established=False"],
        ["NamesAccepted=True", "Established=True"],
    ]
    assert cluster.definition(key)["status"]["acceptedNames"] == cluster.definition(key)["spec"]["names"]
    assert cluster.serves("widgets")


def test_names_in_use_are_not_accepted_until_their_definition_is_deleted(cluster: Cluster) -> None:
    first = cluster.define("widgets")
    second = cluster.define("gadgets", names={"kind": "Widget", "singular": "widget"})

    assert cluster.conditions(second) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert cluster.definition(second)["status"]["acceptedNames"] == {"plural": "gadgets", "kind": ""}
    assert not cluster.serves("gadgets")

    cluster.delete(first)

    assert cluster.conditions(second)["Established"] == ("True", "InitialNamesAccepted")
    assert cluster.serves("gadgets")


def test_new_versions_and_short_names_are_served_at_once(cluster: Cluster) -> None:
    key = cluster.define()
    versions = cluster.definition(key)["spec"]["versions"]
    old = cluster.table.resource("example.com", "v1", "widgets")

    cluster.change(key, versions=[*versions, {**versions[0], "name": "v2", "storage": False}])
    cluster.change(key, names={**cluster.definition(key)["spec"]["names"], "shortNames": ["wd"]})

    resource = cluster.table.resource("example.com", "v2", "widgets")
    assert resource is not None
    assert resource.short_names == ("wd",)
    assert cluster.table.resource("example.com", "v1", "widgets") is not old


def test_the_storage_version_need_not_be_served(cluster: Cluster) -> None:
    schema = {"openAPIV3Schema": FREE_FORM}
    cluster.define(
        versions=[
            {"name": "v1", "served": False, "storage": True, "schema": schema},
            {"name": "v2", "served": True, "storage": False, "schema": schema},
        ]
    )

    resource = cluster.table.resource("example.com", "v2", "widgets")

    assert not cluster.serves("widgets", "v1")
    assert resource is not None
    assert cluster.customs.storage_resource(resource).version == "v1"


def test_an_old_object_gets_defaults_added_later(cluster: Cluster) -> None:
    key = cluster.define()
    stored = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}}
    version = cluster.definition(key)["spec"]["versions"][0]
    size = {"type": "integer", "default": 3}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": size}}},
    }

    cluster.change(key, versions=[{**version, "schema": {"openAPIV3Schema": schema}}])

    resource = cluster.table.resource("example.com", "v1", "widgets")
    assert resource is not None
    assert cluster.customs.convert(stored, resource)["spec"] == {"size": 3}
    assert stored["spec"] == {}


def test_conversion_none_changes_api_version_and_prunes_unknown_fields(
    cluster: Cluster,
) -> None:
    narrow = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    cluster.define(
        versions=[
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": FREE_FORM}},
            {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": narrow}},
        ]
    )
    stored = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"a": 1, "b": 2}}
    resource = cluster.table.resource("example.com", "v2", "widgets")
    assert resource is not None

    converted = cluster.customs.convert(stored, resource)

    assert converted == {**stored, "apiVersion": "example.com/v2", "spec": {"a": 1}}


def test_a_deprecation_warning_recommends_the_best_supported_version(cluster: Cluster) -> None:
    schema = {"openAPIV3Schema": FREE_FORM}
    cluster.define(
        versions=[
            {"name": "v1", "served": True, "storage": True, "schema": schema},
            {"name": "v2alpha1", "served": True, "storage": False, "schema": schema},
            {"name": "v1beta1", "served": True, "storage": False, "schema": schema, "deprecated": True},
        ]
    )
    old, new = (cluster.table.resource("example.com", version, "widgets") for version in ("v1beta1", "v1"))
    assert old is not None
    assert new is not None

    assert cluster.customs.warnings(old) == ["example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"]
    assert cluster.customs.warnings(new) == []


def test_a_definition_is_deleted_after_its_last_instance(cluster: Cluster) -> None:
    key = cluster.define()
    storage = "widgets.example.com"
    cluster.store.create(storage, [Key("d/a"), Key("d/b")], [{"held": False}, {"held": True}], NOW)

    cluster.delete(key)

    definition = cluster.definition(key)
    assert definition["metadata"]["finalizers"] == [CLEANUP_FINALIZER]
    assert cluster.conditions(key)["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert list(cluster.store.all(storage)) == ["d/b"]
    resource = cluster.table.resource("example.com", "v1", "widgets")
    assert resource is not None
    assert cluster.customs.definition(resource).is_terminating
    assert "create" not in cluster.customs.discovery_verbs(resource)

    cluster.store.delete(storage, [Key("d/b")], NOW)
    cluster.lifecycle.reconcile(NOW)

    assert cluster.store.get(CUSTOM_RESOURCE_DEFINITIONS, key) is None
    assert not cluster.serves("widgets")


def write_to(cluster: Cluster, version: str, name: str = "a") -> Write:
    resource = cluster.table.resource("example.com", version, "widgets")
    assert resource is not None
    options = WriteOptions(dry_run=False, field_manager="", field_validation="Strict", force=None)
    user = authenticated_user("admin", "", ())
    return Write(resource, cluster.customs.storage_resource(resource), "default", name, "", options, user, NOW)


def test_an_object_is_validated_in_the_request_version_and_stored_in_the_storage_version(cluster: Cluster) -> None:
    part = {"type": "object", "required": ["c"], "properties": {"c": {"type": "string"}}}
    newer = {"type": "object", "properties": {"spec": part}}
    size = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}
    older = {"type": "object", "properties": {"spec": size}}
    cluster.define(
        versions=[
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": older}},
            {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": newer}},
        ]
    )
    write = write_to(cluster, "v2")
    behaviour = cluster.behaviour
    meta = {"name": "a", "namespace": "default"}
    good = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": meta, "spec": {"c": "x"}}
    bad = {**good, "spec": {}}

    assert [error.field for error in behaviour.validate_create(write, bad)] == ["spec.c"]
    assert behaviour.validate_create(write, good) == []

    assert good == {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": {"size": 3}}
    assert bad["apiVersion"] == "example.com/v2"


def test_no_instance_is_created_while_the_definition_is_being_deleted(cluster: Cluster) -> None:
    key = cluster.define()
    cluster.store.create("widgets.example.com", [Key("d/b")], [{"held": True}], NOW)
    cluster.delete(key)
    write = write_to(cluster, "v1")

    with pytest.raises(Failure) as caught:
        cluster.behaviour.admit(write, {}, None)

    assert caught.value.code == 403
    assert caught.value.message == (
        'widgets.example.com "a" is forbidden: create not allowed while custom resource definition is terminating'
    )


def test_unsupported_features_are_noted(cluster: Cluster) -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "isSemver('1.0')"}]}

    cluster.define(versions=[{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}])

    assert [row["example"] for row in cluster.notes.rows()] == [
        "widgets.example.com: isSemver('1.0'): the function isSemver is not known here"
    ]
