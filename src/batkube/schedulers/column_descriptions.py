"""Descriptions of table columns, extracted from Kubernetes' source.

A Table describes each of its columns. The texts are Kubernetes', so this repository contains no copy of them. They are
read on first use from Go's module cache, which has them once a program of Kubernetes was built on the machine, and then
cached (like the descriptions of types and fields, `field_descriptions`). Columns are defined in
kubernetes/pkg/printers/internalversion/printers.go. Most of their descriptions are those of API fields, which are
looked up in the generated documentation of k8s.io/api and k8s.io/apimachinery.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from batkube.schedulers.build.toolchains import module_cache
from batkube.schedulers.field_descriptions import Descriptions, cached_descriptions

_PRINTERS = "pkg/printers/internalversion/printers.go"
#: API services have their own printer.
_API_SERVICES = "pkg/registry/apiservice/etcd/etcd.go"
#: The API group of each package of internal types that printers.go imports.
_GROUPS = {
    "api": "",
    "admissionregistration": "admissionregistration.k8s.io",
    "apiserverinternal": "internal.apiserver.k8s.io",
    "apps": "apps",
    "autoscaling": "autoscaling",
    "batch": "batch",
    "certificates": "certificates.k8s.io",
    "coordination": "coordination.k8s.io",
    "discovery": "discovery.k8s.io",
    "flowcontrol": "flowcontrol.apiserver.k8s.io",
    "networking": "networking.k8s.io",
    "nodeapi": "node.k8s.io",
    "policy": "policy",
    "rbac": "rbac.authorization.k8s.io",
    "resource": "resource.k8s.io",
    "scheduling": "scheduling.k8s.io",
    "storage": "storage.k8s.io",
    "svmv1alpha1": "storagemigration.k8s.io",
}
#: Resources whose registry uses the default printer (rest.NewDefaultTableConvertor) instead of their own.
_PRINTED_BY_DEFAULT = ("csistoragecapacities.storage.k8s.io",)

_DEFINITIONS = re.compile(r"(\w+) :?= (?:append\(\w+, )?\[\]metav1\.TableColumnDefinition\{\n(.*?)\n\t\}", re.S)
_COLUMN = re.compile(
    r'\{Name: "(?P<name>[^"]*)", Type: "(?P<type>\w+)"'
    r'(?:, Priority: (?P<priority>\d+))?(?:, Format: "(?P<format>\w+)")?'
    r"(?:, Priority: (?P<priority2>\d+))?, Description: (?P<description>.*)\},$",
    re.M,
)
_DOCUMENTED = re.compile(r'(\w+)\.(\w+)\{\}(?:\.InvolvedObject)?\.SwaggerDoc\(\)\["(\w*)"\]')
_OF_METADATA = re.compile(r'swaggerMetadataDescriptions\["(\w+)"\]')
_HANDLER = re.compile(r"TableHandler\((\w+), (print\w+)\)")
_PRINTER = re.compile(r"func (print\w+)\(\w+ \*(\w+)\.(\w+), ")
_IMPORT = re.compile(r'^\t(\w+) "k8s\.io/((?:api|apimachinery)/[\w/]+)"', re.M)
_DOCUMENTED_TYPE = re.compile(r"var map_(\w+) = map\[string\]string\{\n(.*?)\n\}", re.S)
_DOCUMENTED_FIELD = re.compile(r'^\t"(\w*)":\s+(".*"),$', re.M)


class PrintedColumn(NamedTuple):
    """A column as defined in Kubernetes' source."""

    name: str
    type: str
    format: str
    priority: int
    description: str


def read_column_descriptions(version: str, cache: Path) -> Descriptions:
    """Return the column descriptions of a version of Kubernetes (`v1.34.4`), by resource and column.

    Returns nothing if its modules are not on this machine.
    """

    def read() -> Descriptions:
        columns = printed_columns(module_cache() / "k8s.io", version)
        return {
            storage: {column.name: column.description for column in printed} for storage, printed in columns.items()
        }

    return cached_descriptions(cache / "columns" / f"{version}.json", read)


def printed_columns(modules: Path, version: str) -> dict[str, list[PrintedColumn]]:
    """Return the columns of every kind that has a printer; `modules` is the folder of k8s.io. Raises OSError."""
    return _PrinterSource(modules, version).by_resource()


class _PrinterSource:
    """A parser for printers.go."""

    def __init__(self, modules: Path, version: str) -> None:
        self._modules = modules
        self._libraries = version.replace("v1.", "v0.", 1)
        self._text = (modules / f"kubernetes@{version}" / _PRINTERS).read_text(encoding="utf-8")
        self._packages = dict(_IMPORT.findall(self._text))
        self._documented_fields: dict[str, dict[str, str]] = {}

    def by_resource(self) -> dict[str, list[PrintedColumn]]:
        """Return the columns of every resource that has a printer."""
        definitions: dict[str, list[PrintedColumn]] = {}
        for variable, body in _DEFINITIONS.findall(self._text):
            definitions.setdefault(variable, []).extend(self._columns(body))
        kinds = {function: (alias, kind) for function, alias, kind in _PRINTER.findall(self._text)}
        columns: dict[str, list[PrintedColumn]] = {}
        for variable, function in _HANDLER.findall(self._text):
            alias, kind = kinds[function]
            if alias in _GROUPS and not kind.endswith("List"):
                group = _GROUPS[alias]
                columns[f"{_plural(kind)}.{group}" if group else _plural(kind)] = definitions[variable]
        columns["events.events.k8s.io"] = columns["events"]
        api_services = self._modules / f"kube-aggregator@{self._libraries}" / _API_SERVICES
        if api_services.exists():
            text = api_services.read_text(encoding="utf-8")
            columns["apiservices.apiregistration.k8s.io"] = list(self._columns(text))
        return {name: columns[name] for name in sorted(columns) if name not in _PRINTED_BY_DEFAULT}

    def _columns(self, body: str) -> Iterator[PrintedColumn]:
        """Yield the columns in a Go literal."""
        for match in _COLUMN.finditer(body):
            priority = int(match["priority"] or match["priority2"] or 0)
            description = self._description(match["description"])
            yield PrintedColumn(match["name"], match["type"], match["format"] or "", priority, description)

    def _description(self, expression: str) -> str:
        """Evaluate a Go expression that denotes a description."""
        if metadata_field := _OF_METADATA.fullmatch(expression):
            return self._documentation("metav1")[f"ObjectMeta.{metadata_field[1]}"]
        match = _DOCUMENTED.fullmatch(expression)
        if match is None:
            # Other expressions are those of later versions; a column can do without its description.
            return str(json.loads(expression)) if expression.startswith('"') else ""
        alias, kind, field = match.groups()
        if ".InvolvedObject." in expression:
            kind = "ObjectReference"
        return self._documentation(alias).get(f"{kind}.{field}", "")

    def _documentation(self, alias: str) -> dict[str, str]:
        """Return the texts of every SwaggerDoc of an imported package, by `Type.field`."""
        if alias not in self._documented_fields:
            module, _, rest = self._packages[alias].partition("/")
            file = self._modules / f"{module}@{self._libraries}" / rest / "types_swagger_doc_generated.go"
            self._documented_fields[alias] = {
                f"{kind}.{field}": json.loads(quoted)
                for kind, body in _DOCUMENTED_TYPE.findall(file.read_text(encoding="utf-8"))
                for field, quoted in _DOCUMENTED_FIELD.findall(body)
            }
        return self._documented_fields[alias]


def _plural(kind: str) -> str:
    """Return the plural of a built-in kind."""
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith("s") else "s")
