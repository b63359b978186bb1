"""Warnings have the texts of kube-apiserver."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from batkube.api.groups.scheme.warnings import warnings_on_create, warnings_on_update
from batkube.api.requests.warnings import warning_headers
from batkube.cluster.kinds import KindTable, Resource

TABLE = KindTable.builtin()


CONTAINER = {"name": "c", "image": "i"}


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    match = TABLE.of_kind(group, version, value["kind"])
    assert match is not None
    return match


def new(api_version: str, kind: str, name: str = "a", **fields: object) -> list[str]:
    value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}
    return warnings_on_create(resource_of(value), value)


def pod(**spec: object) -> list[str]:
    return new("v1", "Pod", spec={"containers": [CONTAINER], **spec})


def test_an_ordinary_pod_causes_no_warnings() -> None:
    assert pod(nodeSelector={"disk": "ssd"}, terminationGracePeriodSeconds=30, volumes=[{"name": "v"}]) == []


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
            'spec.imagePullSecrets[1].name: duplicate name "a"',
        ),
        (
            {"containers": [{**CONTAINER, "resources": {"limits": {"memory": "100m"}}}]},
            'spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer',
        ),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"path": "a"}, {"path": "a/b"}]}}]},
            'volume "v" (Secret "s"): overlapping paths: "a/b" with "a"',
        ),
        (
            {"containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80}]}]},
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
        ),
    ],
)
def test_a_questionable_pod_causes_warnings(spec: dict[str, Any], warning: str) -> None:
    assert pod(**spec) == [warning]


def test_a_variable_may_extend_an_earlier_value_but_overriding_it_causes_a_warning() -> None:
    grown = [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]
    hidden = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]

    assert pod(containers=[{**CONTAINER, "env": grown}]) == []
    assert pod(containers=[{**CONTAINER, "env": hidden}]) == [
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'
    ]


def test_a_template_is_checked_again_only_if_the_spec_changed() -> None:
    template = {"spec": {"containers": [CONTAINER], "nodeSelector": {"beta.kubernetes.io/arch": "x"}}}
    old = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1}, "spec": {"template": template}}
    relabelled = {**old, "metadata": {"generation": 1, "labels": {"a": "b"}}}
    changed = {**old, "metadata": {"generation": 2}}

    assert warnings_on_update(resource_of(old), relabelled, old, "") == []
    assert warnings_on_update(resource_of(old), changed, old, "status") == []
    assert warnings_on_update(resource_of(old), changed, old, "") == [
        "spec.template.spec.nodeSelector[beta.kubernetes.io/arch]: "
        'deprecated since v1.14; use "kubernetes.io/arch" instead'
    ]


def test_an_invalid_tls_secret_causes_a_warning() -> None:
    block = "-----BEGIN {0}-----\nMTIzNA==\n-----END {0}-----\n"

    def warning(certificate: str, key: str) -> list[str]:
        data = {"tls.crt": certificate, "tls.key": key}
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
        return new("v1", "Secret", type="kubernetes.io/tls", data=encoded)

    certificate, key = block.format("CERTIFICATE"), block.format("PRIVATE KEY")
    assert warning("", "") == ["tls: failed to find any PEM data in certificate input"]
    assert warning(certificate, "junk") == ["tls: failed to find any PEM data in key input"]
    assert warning(certificate, certificate) == [
        "tls: found a certificate rather than a key in the PEM for the private key"
    ]
    assert warning(key, certificate) == [
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
        "have been switched"
    ]
    assert warning(certificate, key) == ["x509: malformed certificate"]
    assert new("v1", "Secret", type="Opaque", data={}) == []


def test_warning_headers_are_unique_and_limited() -> None:
    assert warning_headers(["a", "b", "a", ""]) == (("Warning", '299 - "a"'), ("Warning", '299 - "b"'))
    assert warning_headers(['say "x"', "bad\n"]) == (("Warning", '299 - "say \\"x\\""'),)
    many = warning_headers([f"{number} " + "x" * 400 for number in range(40)])
    assert len(many) == 16
    assert all(len(text) == len('299 - ""') + 256 for _, text in many)
