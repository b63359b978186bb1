"""Derive the table of printed columns from the source of Kubernetes.

    python scripts/derive_columns.py PATH_OF_THE_GO_MODULES_k8s.io > src/batkube/api/printing/columns.json

The columns of a Table (their names, types, priorities and descriptions) are part of what a client gets, so they must be
equal to the real ones. They stand in kubernetes/pkg/printers/internalversion/printers.go, where most descriptions are
those of API fields; these are looked up in the generated documentation of k8s.io/api and k8s.io/apimachinery. The
result names each field's text once, and lists the columns of one resource per line.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

VERSION = "0.34.4"

#: The API group of each package of internal types that printers.go names.
GROUPS = {
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
#: Resources whose registry does not use its printer, but the default one (rest.NewDefaultTableConvertor).
PRINTED_BY_DEFAULT = ("csistoragecapacities.storage.k8s.io",)
#: API services print themselves (kube-aggregator/pkg/registry/apiservice/etcd/etcd.go).
API_SERVICES = """
{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
{Name: "Service", Type: "string", Description: "The reference to the service that hosts this API endpoint."},
{Name: "Available", Type: "string", Description: "Whether this service is available."},
{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
"""

DEFINITIONS = re.compile(r"(\w+) :?= (?:append\(\w+, )?\[\]metav1\.TableColumnDefinition\{\n(.*?)\n\t\}", re.S)
COLUMN = re.compile(
    r'\{Name: "(?P<name>[^"]*)", Type: "(?P<type>\w+)"'
    r'(?:, Priority: (?P<priority>\d+))?(?:, Format: "(?P<format>\w+)")?'
    r"(?:, Priority: (?P<priority2>\d+))?, Description: (?P<description>.*)\},$"
)
DOCUMENTED = re.compile(r'(\w+)\.(\w+)\{\}(?:\.InvolvedObject)?\.SwaggerDoc\(\)\["(\w+)"\]')
HANDLER = re.compile(r"TableHandler\((\w+), (print\w+)\)")
PRINTER = re.compile(r"func (print\w+)\(\w+ \*(\w+)\.(\w+), ")
IMPORT = re.compile(r'^\t(\w+) "k8s\.io/((?:api|apimachinery)/[\w/]+)"', re.M)


def plural(kind: str) -> str:
    """Return the plural that Kubernetes uses for a kind of its own."""
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith("s") else "s")


def documentation(folder: Path) -> dict[str, str]:
    """Return the texts of every SwaggerDoc of a package by `Type.field`."""
    text = (folder / "types_swagger_doc_generated.go").read_text(encoding="utf-8")
    texts: dict[str, str] = {}
    for variable, body in re.findall(r"var map_(\w+) = map\[string\]string\{\n(.*?)\n\}", text, re.S):
        for field, quoted in re.findall(r'^\t"(\w*)":\s+(".*"),$', body, re.M):
            texts[f"{variable}.{field}"] = json.loads(quoted)
    return texts


class Derivation:
    """One reading of printers.go."""

    def __init__(self, modules: Path) -> None:
        self.modules = modules
        printers = modules / f"kubernetes@v1.{VERSION.split('.', 1)[1]}" / "pkg/printers/internalversion/printers.go"
        self.source = printers.read_text(encoding="utf-8")
        self.packages = dict(IMPORT.findall(self.source))
        self.documented: dict[str, dict[str, str]] = {}
        self.descriptions: dict[str, str] = {}

    def described(self, expression: str) -> str:
        """Return a literal text as it is, or `@key` of the field's text, which is kept in `descriptions`."""
        match = DOCUMENTED.fullmatch(expression)
        if match is None:
            return str(json.loads(expression))
        alias, kind, field = match.groups()
        if ".InvolvedObject." in expression:
            kind = "ObjectReference"
        if alias not in self.documented:
            module, _, rest = self.packages[alias].partition("/")
            self.documented[alias] = documentation(self.modules / f"{module}@v{VERSION}" / rest)
        text = self.documented[alias].get(f"{kind}.{field}", "")
        if not text:
            return ""
        key = f"{alias}.{kind}.{field}"
        self.descriptions[key] = text
        return f"@{key}"

    def columns(self, body: str) -> Iterator[list[str | int]]:
        """Yield the columns that a Go literal lists."""
        for line in body.splitlines():
            if not line.strip().startswith("{"):
                continue
            match = COLUMN.search(line.strip())
            if match is None:
                raise SystemExit(f"a column of an unknown form: {line.strip()}")
            priority = int(match["priority"] or match["priority2"] or 0)
            description = self.described(match["description"])
            yield [match["name"], match["type"], match["format"] or "", priority, description]

    def by_resource(self) -> dict[str, list[list[str | int]]]:
        """Return the columns of every resource that has a printer."""
        definitions: dict[str, list[list[str | int]]] = {}
        for variable, body in DEFINITIONS.findall(self.source):
            definitions.setdefault(variable, []).extend(self.columns(body))
        kinds = {function: (alias, kind) for function, alias, kind in PRINTER.findall(self.source)}
        found: dict[str, list[list[str | int]]] = {}
        for variable, function in HANDLER.findall(self.source):
            alias, kind = kinds[function]
            if alias in GROUPS and not kind.endswith("List"):
                group = GROUPS[alias]
                found[f"{plural(kind)}.{group}" if group else plural(kind)] = definitions[variable]
        found["events.events.k8s.io"] = found["events"]
        found["apiservices.apiregistration.k8s.io"] = list(self.columns(API_SERVICES))
        return {name: found[name] for name in sorted(found) if name not in PRINTED_BY_DEFAULT}


def main() -> None:
    """Write the table to standard output."""
    derivation = Derivation(Path(sys.argv[1]))
    columns = derivation.by_resource()
    texts = sorted(derivation.descriptions.items())
    print('{"descriptions": {')
    print(",\n".join(f"{json.dumps(key)}: {json.dumps(text)}" for key, text in texts))
    print('},\n"columns": {')
    print(",\n".join(f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in columns.items()))
    print("}}")


if __name__ == "__main__":
    main()
