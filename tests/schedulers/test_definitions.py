"""CustomResourceDefinitions of a program: read from its module, in the current version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube.cluster.world import World
from batkube.kernel.errors import InputError
from batkube.kernel.streams import Streams
from batkube.programs.startup.launch import make_server
from batkube.schedulers.definitions import decode_definitions, encode_definitions, read_definitions

OLD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gangs.example.k8s.io"},
    "spec": {
        "group": "example.k8s.io",
        "names": {"kind": "Gang", "plural": "gangs"},
        "scope": "Namespaced",
        "version": "v1alpha1",
        "subresources": {"status": {}},
        "validation": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"size": {"type": "integer"}}}}}},
    },
}
NEW: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "teams.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Team", "plural": "teams"},
        "scope": "Cluster",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def module(folder: Path) -> Path:
    (folder / "crds").mkdir()
    (folder / "crds" / "b.yaml").write_text(yaml.safe_dump(OLD))
    (folder / "crds" / "a.yaml").write_text("---\nkind: Deployment\n---\n" + yaml.safe_dump(NEW))
    (folder / "crds" / "readme.md").write_text("{")
    return folder


def test_only_definitions_of_a_folder_are_read_in_file_order(tmp_path: Path) -> None:
    definitions = read_definitions(module(tmp_path), ["crds"])

    assert [definition["metadata"]["name"] for definition in definitions] == [
        "teams.example.org",
        "gangs.example.k8s.io",
    ]
    assert definitions[0] == NEW
    assert decode_definitions(encode_definitions(definitions)) == definitions


def test_a_v1beta1_definition_is_accepted_and_preserves_unknown_fields(
    tmp_path: Path,
) -> None:
    [definition] = read_definitions(module(tmp_path), ["crds/b.yaml"])
    server = make_server(World(Streams(0)))
    manifests = server.api.manifest_client(server.token)

    manifests.apply(definition)
    gang = {"apiVersion": "example.k8s.io/v1alpha1", "kind": "Gang", "metadata": {"name": "six"}, "spec": {"more": 6}}
    resource, key = manifests.apply(gang)

    assert (resource.plural, key) == ("gangs", "default/six")
    assert "status" in resource.subresources


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("nowhere", "nowhere: cannot be read: No such file or directory"),
        ("crds/readme.md", "crds/readme.md: line 2: is not YAML"),
        ("empty", "empty: contains no CustomResourceDefinition"),
    ],
)
def test_a_path_without_definitions_is_rejected(tmp_path: Path, place: str, problem: str) -> None:
    folder = module(tmp_path)
    (folder / "empty").mkdir()

    with pytest.raises(InputError) as raised:
        read_definitions(folder, [place])
    assert problem in str(raised.value)
