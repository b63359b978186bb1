from __future__ import annotations

import itertools

import pytest

from batkube.cluster.kinds import KUBERNETES_VERSIONS, KindTable, Resource, validate_kubernetes, version_rank
from batkube.cluster.schemas import Schema, Shape
from batkube.kernel.errors import Bug, InputError

JSON_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


@pytest.fixture(scope="module")
def builtin() -> KindTable:
    return KindTable.builtin()


def custom(group: str, version: str, plural: str = "widgets") -> Resource:
    kind = plural[:-1].capitalize()
    return Resource(group, version, kind, plural, plural[:-1], True, ("get", "list"), Schema(Shape.STRUCT), custom=True)


def test_a_resource_is_found_by_path_and_by_kind(builtin: KindTable) -> None:
    deployments = builtin.resource("apps", "v1", "deployments")

    assert deployments is not None
    assert builtin.of_kind("apps", "v1", "Deployment") is deployments
    assert (deployments.storage, deployments.qualified_kind) == ("deployments.apps", "Deployment.apps")
    assert deployments.subresources["scale"].group == "autoscaling"
    assert builtin.resource("apps", "v1beta1", "deployments") is None


def test_events_of_both_groups_are_stored_together_but_named_apart(builtin: KindTable) -> None:
    core, grouped = builtin.resource("", "v1", "events"), builtin.resource("events.k8s.io", "v1", "events")

    assert core is not None
    assert grouped is not None
    assert core.storage == grouped.storage == "events"
    assert grouped.group_resource == "events.events.k8s.io"


def test_every_kind_of_discovery_has_a_schema_with_metadata_or_is_a_request(builtin: KindTable) -> None:
    for resource in builtin.resources():
        fields = resource.schema.fields
        assert {"kind", "apiVersion"} <= set(fields), resource.group_resource
        assert "metadata" in fields, resource.group_resource


def test_a_definition_may_contain_itself(builtin: KindTable) -> None:
    schema = builtin.definition(JSON_SCHEMA)

    properties = schema.fields["properties"].schema
    assert properties.items is schema
    assert schema.fields["additionalProperties"].schema.items is schema


def test_fields_have_the_attributes_of_their_go_and_protobuf_encoding(builtin: KindTable) -> None:
    volume = builtin.definition("io.k8s.api.core.v1.Volume").fields
    assert volume["name"].number == 1
    assert not volume["name"].omit_empty
    assert volume["hostPath"].within == (2,), "the embedded VolumeSource is a message of its own"
    assert volume["hostPath"].pointer

    port = builtin.definition("io.k8s.api.core.v1.ContainerPort").fields
    assert (port["containerPort"].wire, port["name"].wire) == ("varint", "bytes")
    assert port["protocol"].default == "TCP"
    assert port["protocol"].schema.enum == ("SCTP", "TCP", "UDP")

    created = builtin.definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").fields["creationTimestamp"]
    assert created.omit_zero


def test_lists_and_maps_have_their_merge_strategy(builtin: KindTable) -> None:
    containers = builtin.definition("io.k8s.api.core.v1.PodSpec").fields["containers"]
    assert (containers.schema.list_type, containers.schema.list_keys) == ("map", ("name",))
    assert (containers.patch_strategy, containers.patch_merge_key) == (("merge",), "name")

    claim = builtin.definition("io.k8s.api.core.v1.PersistentVolumeSpec").fields["claimRef"].schema
    assert builtin.definition("io.k8s.api.core.v1.ObjectReference").atomic
    assert not claim.atomic, "the marker of a field overrides that of its type"


def test_kinds_of_old_versions_are_known_though_not_served(builtin: KindTable) -> None:
    assert builtin.has_kind("apps", "v1beta1", "Deployment")
    assert not builtin.has_kind("apps", "v9", "Deployment")


def test_stable_versions_come_before_betas_and_newer_before_older() -> None:
    # The example of the Kubernetes documentation, "Version priority" of CustomResourceDefinitions.
    documented = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]

    for shuffled in itertools.islice(itertools.permutations(documented), 0, 50_000, 997):
        assert sorted(shuffled, key=version_rank) == documented


def test_custom_kinds_are_listed_after_built_in_ones_and_can_be_removed() -> None:
    table = KindTable.builtin(metrics=True)
    before = [group.name for group in table.groups()]
    widgets = [custom("example.com", version) for version in ("v1alpha1", "v2", "v1")]
    for resource in [*widgets, custom("a.example.com", "v1")]:
        table.add(resource)

    groups = table.groups()
    assert [group.name for group in groups] == [*before[:-1], "a.example.com", "example.com", "metrics.k8s.io"]
    assert groups[-2].versions == ("v2", "v1", "v1alpha1")
    assert groups[-2].preferred == "v2"
    served = [resource.version for resource in table.resources() if resource.group == "example.com"]
    assert served == ["v2", "v1", "v1alpha1"]

    revision = table.revision
    for resource in widgets:
        table.remove(resource)
    assert table.of_kind("example.com", "v1", "Widget") is None
    assert table.revision > revision
    with pytest.raises(Bug, match="not in the table"):
        table.remove(widgets[0])


def test_metrics_are_served_only_on_request_and_never_stored(builtin: KindTable) -> None:
    pods = KindTable.builtin(metrics=True).resource("metrics.k8s.io", "v1beta1", "pods")

    assert pods is not None
    assert pods.storage == ""
    assert builtin.resource("metrics.k8s.io", "v1beta1", "pods") is None


@pytest.mark.parametrize("kubernetes", KUBERNETES_VERSIONS)
def test_each_version_of_kubernetes_has_its_own_table(kubernetes: str) -> None:
    table = KindTable.builtin(kubernetes)
    pod = table.definition_of("", "v1", "Pod").fields["spec"].schema

    assert table.kubernetes_version.startswith(f"v{kubernetes}.")
    assert pod.fields["containers"].required
    assert pod.fields["containers"].schema.list_keys == ("name",)
    assert ("schedulingGroup" in pod.fields) == (kubernetes >= "1.36")


def test_kubernetes_1_37_can_serve_its_own_gangs() -> None:
    table = KindTable.builtin("1.37")
    for version in ("v1beta1", "v1alpha3"):
        table.serve("scheduling.k8s.io", version)
    stored, older = (table.resource("scheduling.k8s.io", version, "podgroups") for version in ("v1beta1", "v1alpha3"))

    assert stored is not None
    assert older is not None
    assert older.current is stored
    assert "scheduling.k8s.io/v1beta1" not in KindTable.builtin("1.34").optional_versions


@pytest.mark.parametrize(("text", "version"), [("1.37", "1.37"), ("v1.37.1", "1.37"), ("1.34.4", "1.34")])
def test_a_version_of_kubernetes_may_name_a_patch(text: str, version: str) -> None:
    assert validate_kubernetes(text, "--kubernetes") == version


@pytest.mark.parametrize("text", ["1.33", "2", "newest", ""])
def test_an_unknown_version_of_kubernetes_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match=r"one of 1\.34, 1\.35"):
        validate_kubernetes(text, "--kubernetes")
