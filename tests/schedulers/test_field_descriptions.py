"""Field descriptions are read from Kubernetes' module if it is available, and cached."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batkube.schedulers import field_descriptions
from batkube.schedulers.field_descriptions import read_field_descriptions

POD = {"description": "A pod.", "properties": {"spec": {"description": "Wishes.", "type": "object"}, "status": {}}}
WORDS = {"io.k8s.api.core.v1.Pod": {"": "A pod.", "spec": "Wishes."}}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go's module cache, empty."""
    folder = tmp_path / "modules"
    monkeypatch.setattr(field_descriptions, "module_cache", lambda: folder)
    return folder


def put(modules: Path, document: object) -> Path:
    file = modules / "k8s.io/kubernetes@v1.34.4/api/openapi-spec/swagger.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(document))
    return file


def test_descriptions_are_read_from_the_module_and_cached(modules: Path, tmp_path: Path) -> None:
    file = put(modules, {"definitions": {"io.k8s.api.core.v1.Pod": POD}})

    assert read_field_descriptions("v1.34.4", tmp_path / "cache") == WORDS
    file.unlink()
    assert read_field_descriptions("v1.34.4", tmp_path / "cache") == WORDS, "the module may be gone"
    assert read_field_descriptions("v1.35.0", tmp_path / "cache") == {}, "another version has no descriptions"


def test_without_the_module_there_are_no_descriptions_and_no_cache_file(modules: Path, tmp_path: Path) -> None:
    assert read_field_descriptions("v1.34.4", tmp_path / "cache") == {}
    assert not (tmp_path / "cache").exists()
    put(modules, {"definitions": {"io.k8s.api.core.v1.Pod": POD}})
    assert read_field_descriptions("v1.34.4", tmp_path / "cache") == WORDS


def test_a_corrupt_cache_file_is_replaced(modules: Path, tmp_path: Path) -> None:
    put(modules, {"definitions": {"io.k8s.api.core.v1.Pod": POD}})
    cache_file = tmp_path / "cache/descriptions/v1.34.4.json"
    cache_file.parent.mkdir(parents=True)
    cache_file.write_text('{"io.k8s')

    assert read_field_descriptions("v1.34.4", tmp_path / "cache") == WORDS
    assert json.loads(cache_file.read_text()) == WORDS


def test_an_unwritable_cache_is_ignored(modules: Path, tmp_path: Path) -> None:
    put(modules, {"definitions": {"io.k8s.api.core.v1.Pod": POD}})
    (tmp_path / "cache").write_text("no folder")

    assert read_field_descriptions("v1.34.4", tmp_path / "cache") == WORDS
