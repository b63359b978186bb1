"""Field selectors: the selectable fields of each kind, and errors about others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.requests.field_selectors import NAME, FieldRequirement, parse_field_requirements, parse_selector_for
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Schema, Shape
from batkube.cluster.selectors import SelectorError


@pytest.fixture(scope="module")
def kinds() -> KindTable:
    return KindTable.builtin()


def resource(kinds: KindTable, group: str, plural: str) -> Resource:
    found = kinds.resource(group, "v1", plural)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("group", "plural", "selector", "value"),
    [
        (
            "",
            "pods",
            "spec.nodeName=n1,status.phase=Running",
            {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
        ),
        ("", "pods", "spec.nodeName=", {"spec": {}}),
        ("", "pods", "spec.host=n1", {"spec": {"nodeName": "n1"}}),
        ("", "pods", "spec.hostNetwork=false", {"spec": {}}),
        ("", "pods", "spec.hostNetwork=true", {"spec": {"hostNetwork": True}}),
        ("", "pods", "status.podIP=10.0.0.1", {"status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]}}),
        ("", "nodes", "spec.unschedulable=true", {"spec": {"unschedulable": True}}),
        ("", "nodes", "spec.unschedulable=false", {"spec": {}}),
        ("", "replicationcontrollers", "status.replicas=0", {}),
        ("batch", "jobs", "status.successful=2", {"status": {"succeeded": 2}}),
        ("", "events", "source=kubelet", {"source": {"component": "kubelet"}, "reportingComponent": "other"}),
        ("", "events", "source=ctl", {"source": {}, "reportingComponent": "ctl"}),
        ("events.k8s.io", "events", "regarding.name=p", {"involvedObject": {"name": "p"}}),
        ("events.k8s.io", "events", "reportingController=ctl", {"reportingComponent": "ctl"}),
        ("", "secrets", "type=Opaque", {"type": "Opaque"}),
        ("", "configmaps", "metadata.namespace=d,metadata.name=a", {}),
    ],
)
def test_fields_select_as_in_kube_apiserver(
    kinds: KindTable, group: str, plural: str, selector: str, value: dict[str, object]
) -> None:
    chosen = parse_selector_for(selector, resource(kinds, group, plural))

    assert chosen.matches({"metadata": {"name": "a", "namespace": "d"}, **value})


@pytest.mark.parametrize(
    ("group", "plural", "field", "message"),
    [
        ("", "pods", "metadata.labels", "field label not supported: metadata.labels"),
        ("", "nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("batch", "jobs", "status.failed", 'field label "status.failed" not supported for Job'),
        ("events.k8s.io", "events", "involvedObject.name", "field label not supported: involvedObject.name"),
        (
            "apps",
            "replicasets",
            "status.replicas",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            "resource.k8s.io",
            "resourceslices",
            "spec.pool",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool",
        ),
    ],
)
def test_unsupported_fields_are_rejected_with_the_message_of_their_kind(
    kinds: KindTable, group: str, plural: str, field: str, message: str
) -> None:
    with pytest.raises(SelectorError) as refusal:
        parse_selector_for(f"{field}=x", resource(kinds, group, plural))

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\b", r"invalid field selector: invalid escape sequence: \b"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_an_invalid_selector_is_rejected(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        parse_field_requirements(text)

    assert str(refusal.value) == message


FIELDS = st.sampled_from(["metadata.name", "spec.nodeName", "type"])


@given(st.lists(st.tuples(FIELDS, st.text(alphabet="ab,=\\ é", max_size=5), st.booleans()), max_size=4))
def test_escaped_values_survive_a_round_trip(terms: list[tuple[str, str, bool]]) -> None:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")

    text = ",".join(f"{field}{'!=' if negated else '='}{escaped(value)}" for field, value, negated in terms)

    found = parse_field_requirements(text)

    assert sorted(map(repr, found)) == sorted(repr(FieldRequirement(*term)) for term in terms)


def test_an_exact_name_is_recognised(kinds: KindTable) -> None:
    pods = resource(kinds, "", "pods")

    assert parse_selector_for("metadata.name=a,status.phase=Running", pods).exact(NAME) == "a"
    assert parse_selector_for("metadata.name!=a", pods).exact(NAME) is None
    assert not parse_selector_for("", pods)
    assert not parse_selector_for("=", pods)


def test_a_custom_resource_lists_its_own_fields() -> None:
    schema = Schema(Shape.STRUCT)
    widgets = Resource(
        "example.com",
        "v1",
        "Widget",
        "widgets",
        "widget",
        False,
        (),
        schema,
        custom=True,
        selectable_fields=(".spec.n",),
    )

    assert parse_selector_for("spec.n=5", widgets).matches({"metadata": {"name": "w"}, "spec": {"n": 5}})
    assert parse_selector_for("spec.n=", widgets).matches({"metadata": {"name": "w"}})
    with pytest.raises(SelectorError, match=r"field label not supported: metadata\.namespace"):
        parse_selector_for("metadata.namespace=d", widgets)
