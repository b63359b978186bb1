"""Validation of Ingresses, IngressClasses and NetworkPolicies (concepts/services-networking)."""

from __future__ import annotations

import pytest
from tests.api.groups.creation_errors import errors

INGRESS, PATH = "Ingress/ing", "spec.rules.0.http.paths.0"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (f"{PATH}.path", "x", "spec.rules[0].http.paths[0].path"),
        (f"{PATH}.path", "/a//b", "spec.rules[0].http.paths[0].path"),
        (f"{PATH}.pathType", "Regex", "spec.rules[0].http.paths[0].pathType"),
        ("spec.rules.0.host", "10.0.0.1", "spec.rules[0].host"),
        ("spec.rules.0.host", "a.*.b", "spec.rules[0].host"),
        ("spec.defaultBackend", {}, "spec.defaultBackend"),
        ("spec.defaultBackend.service.port", {}, "spec.defaultBackend"),
        ("spec.defaultBackend.service.port.name", "http", "spec.defaultBackend"),
    ],
)
def test_a_wrong_field_of_an_ingress_is_reported(path: str, value: object, field: str) -> None:
    assert [where for where, _ in errors(INGRESS, {path: value})] == [field]


def test_an_ingress_needs_rules_or_a_default_backend() -> None:
    assert errors(INGRESS, {"spec.rules": []}) == []
    assert errors(INGRESS, {"spec.defaultBackend": None}) == []
    [(field, message)] = errors(INGRESS, {"spec.rules": None, "spec.defaultBackend": None})
    assert field == "spec"
    assert message.endswith("either `defaultBackend` or `rules` must be specified")


def test_the_deprecated_class_annotation_must_match_the_class_name() -> None:
    annotation = "annotations.kubernetes.io/ingress.class"

    assert errors(INGRESS, {"metadata.annotations": {"kubernetes.io/ingress.class": "c"}}) == []
    [(field, _)] = errors(INGRESS, {"metadata.annotations": {"kubernetes.io/ingress.class": "other"}})
    assert field == annotation


def test_parameters_of_an_ingress_class_have_a_namespace_if_they_are_namespaced() -> None:
    name = "IngressClass/ic"

    assert [field for field, _ in errors(name, {"spec.parameters.namespace": None})] == ["spec.parameters.namespace"]
    assert [field for field, _ in errors(name, {"spec.parameters.scope": "Cluster"})] == ["spec.parameters.namespace"]


def test_an_excepted_block_of_a_network_policy_is_within_its_block() -> None:
    path = "spec.ingress.0.from.0.ipBlock.except"

    assert errors("NetworkPolicy/np", {path: ["10.255.0.0/16"]}) == []
    [(field, _)] = errors("NetworkPolicy/np", {path: ["11.0.0.0/16"]})
    assert field == "spec.ingress[0].from[0].ipBlock.except[0]"
