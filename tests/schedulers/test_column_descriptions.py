"""Column descriptions are read from Kubernetes' source if it is available, and cached."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.api.groups.scheme.printing import printer_of
from batkube.api.printing.columns import with_descriptions
from batkube.cluster.kinds import KindTable
from batkube.schedulers import column_descriptions
from batkube.schedulers.column_descriptions import read_column_descriptions

VERSION = "v1.34.4"
PRINTERS = """
import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiv1 "k8s.io/api/core/v1"
)

func AddHandlers(h printers.PrintHandler) {
	podColumnDefinitions := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Ready", Type: "string", Description: "How many are ready."},
		{Name: "Whole", Type: "string", Description: apiv1.PodStatus{}.SwaggerDoc()[""]},
		{Name: "New", Type: "string", Description: someFunction(1)},
		{Name: "IP", Type: "string", Priority: 1, Description: apiv1.PodStatus{}.SwaggerDoc()["podIP"]},
	}
	_ = h.TableHandler(podColumnDefinitions, printPodList)
	_ = h.TableHandler(podColumnDefinitions, printPod)
	_ = h.TableHandler(podColumnDefinitions, printEvent)
}
func printPod(pod *api.Pod, options printers.GenerateOptions) ([]metav1.TableRow, error) {
func printPodList(podList *api.PodList, options printers.GenerateOptions) ([]metav1.TableRow, error) {
func printEvent(obj *api.Event, options printers.GenerateOptions) ([]metav1.TableRow, error) {
"""
WORDS = {"Name": 'Its "name".', "Ready": "How many are ready.", "Whole": "All.", "New": "", "IP": "Where it is."}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go's module cache, empty."""
    folder = tmp_path / "modules"
    monkeypatch.setattr(column_descriptions, "module_cache", lambda: folder)
    return folder


def put(modules: Path) -> Path:
    """Write a source file in the format of Kubernetes'; return the file that lists columns."""
    files = {
        "kubernetes@v1.34.4/pkg/printers/internalversion/printers.go": PRINTERS,
        "apimachinery@v0.34.4/pkg/apis/meta/v1/types_swagger_doc_generated.go": (
            'var map_ObjectMeta = map[string]string{\n\t"name": "Its \\"name\\".",\n}\n'
        ),
        "api@v0.34.4/core/v1/types_swagger_doc_generated.go": (
            'var map_PodStatus = map[string]string{\n\t"":      "All.",\n\t"podIP": "Where it is.",\n}\n'
        ),
    }
    for name, text in files.items():
        file = modules / "k8s.io" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return modules / "k8s.io" / next(iter(files))


def test_descriptions_are_read_from_the_source_and_cached(modules: Path, tmp_path: Path) -> None:
    file = put(modules)
    expected = {"events": WORDS, "events.events.k8s.io": WORDS, "pods": WORDS}

    assert read_column_descriptions(VERSION, tmp_path / "cache") == expected
    file.unlink()
    assert read_column_descriptions(VERSION, tmp_path / "cache") == expected, "the source may be gone"
    assert read_column_descriptions("v1.35.0", tmp_path / "cache") == {}, "another version has no descriptions"


def test_columns_have_descriptions_if_the_source_has_them() -> None:
    table = KindTable.builtin()
    pods, roles = table.resource("", "v1", "pods"), table.resource("rbac.authorization.k8s.io", "v1", "roles")
    assert pods is not None
    assert roles is not None
    words = {"pods": {"Name": "Its name.", "Age": "Since when."}}

    of_pods = with_descriptions(printer_of(pods), pods.storage, words).columns
    of_roles = with_descriptions(printer_of(roles), roles.storage, words).columns

    assert {one["name"]: one["description"] for one in of_pods if one["description"]} == words["pods"]
    assert [one["description"] for one in of_roles] == ["Its name.", "Since when."]
    assert not any(one["description"] for one in printer_of(pods).columns), "what all share has not been changed"
