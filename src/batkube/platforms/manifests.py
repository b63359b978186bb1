"""Platforms from Kubernetes Node manifests, such as `kubectl get nodes -o yaml` prints them.

What pods may use is `status.allocatable`, which is also what kube-scheduler looks at (scheduler framework,
NodeInfo.SetNode); a node without one gets its `status.capacity`, as the API server would default it. A cordoned node
(`spec.unschedulable`) takes no pods in a cluster, so it is no machine here. Taints are kept but nobody heeds them: that
takes a scheduler that knows tolerations. Both are noted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from batkube.kernel.documents import yaml_documents
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.quantities import CPU
from batkube.platforms.assembling import assemble, checked_amount, with_pods
from batkube.platforms.model import REPELLING, Machine, Platform

CORDONED = FidelityNote("platform", "a node is cordoned (spec.unschedulable) and is left out")
TAINTED = FidelityNote("platform", "nodes with taints take none of the jobs, whose pods tolerate no taint")
_EFFECTS = (*REPELLING, "PreferNoSchedule")
_LISTS = ("List", "NodeList")
_REMEDY = "write Node manifests, as `kubectl get nodes -o yaml` prints them"


def parse_manifests(path: Path, text: str) -> Platform:
    """Return the nodes of a file of manifests, in the order of the file."""
    source = str(path)
    documents = _json_documents(source, text) if path.suffix.lower() == ".json" else yaml_documents(path, text)
    nodes = [
        pair
        for number, document in enumerate(documents, 1)
        if document is not None
        for pair in _nodes(source, f"document {number}", document)
    ]
    open_nodes = [(at, node) for at, node in nodes if not _is_cordoned(source, at, node)]
    if nodes and not open_nodes:
        raise InputError(
            source,
            problem="every node is cordoned (spec.unschedulable), so nothing can run",
            remedy="uncordon some: remove spec.unschedulable",
        )
    machines = [_machine(source, at, number, node) for number, (at, node) in enumerate(open_nodes)]
    tainted = sum(not machine.takes_any_pod for machine in machines)
    counts = ((CORDONED, len(nodes) - len(open_nodes)), (TAINTED, tainted))
    return assemble(source, machines, remedy=_REMEDY, notes=tuple(pair for pair in counts if pair[1]))


def _is_cordoned(source: str, at: str, node: dict[str, object]) -> bool:
    return _mapping(source, at, node, "spec").get("unschedulable") is True


def _json_documents(source: str, text: str) -> list[object]:
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as error:
        raise InputError(source, at=f"line {error.lineno}", problem=f"not JSON: {error.msg}", remedy=_REMEDY) from None
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, or thousands of brackets
        raise InputError(source, problem=f"not JSON that can be read: {error}", remedy=_REMEDY) from None


def _nodes(source: str, at: str, document: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the Node objects of a document with their places, those inside lists too."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if isinstance(document, dict) and kind == "Node":
        yield at, document
    elif isinstance(document, dict) and kind in _LISTS:
        for number, item in enumerate(_list(source, at, document, "items")):
            yield from _nodes(source, f"{at}, items[{number}]", item)
    else:
        what = f"a {kind}" if kind else "no Kubernetes object"
        raise InputError(source, at=at, problem=f"holds {what}, not a Node", remedy=_REMEDY)


def _machine(source: str, at: str, number: int, node: dict[str, object]) -> Machine:
    metadata, spec, status = (_mapping(source, at, node, part) for part in ("metadata", "spec", "status"))
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(source, at=f"{at}, metadata.name", problem="the node has no name", remedy=_REMEDY)
    at = f"{at}, node {name!r}"
    field = "allocatable" if status.get("allocatable") else "capacity"
    quantities = _mapping(source, at, status, field)
    capacity = {
        resource: checked_amount(source, f"{at}, status.{field}.{resource}", resource, value)
        for resource, value in quantities.items()
    }
    if CPU not in capacity:
        raise InputError(
            source, at=f"{at}, status", problem="says nothing of cpu", remedy="give status.allocatable.cpu, such as '4'"
        )
    return Machine(
        id=number,
        name=name,
        capacity=with_pods(capacity),
        labels=_labels(source, at, metadata),
        taints=_taints(source, at, spec),
    )


def _labels(source: str, at: str, metadata: dict[str, object]) -> dict[str, str]:
    labels = {}
    for key, value in _mapping(source, at, metadata, "labels").items():
        if not isinstance(value, str):
            raise InputError(source, at=f"{at}, label {key}", problem=f"{value!r} is not text", remedy="quote it")
        labels[key] = value
    return labels


def _taints(source: str, at: str, spec: dict[str, object]) -> tuple[dict[str, str], ...]:
    taints = []
    for number, taint in enumerate(_list(source, at, spec, "taints")):
        if not isinstance(taint, dict) or not taint.get("key") or taint.get("effect") not in _EFFECTS:
            raise InputError(
                source,
                at=f"{at}, spec.taints[{number}]",
                problem="not a taint",
                remedy=f"a taint has a key and an effect, one of {', '.join(_EFFECTS)}",
            )
        taints.append({key: str(taint[key]) for key in ("key", "value", "effect") if taint.get(key) is not None})
    return tuple(taints)


def _mapping(source: str, at: str, parent: dict[str, object], key: str) -> dict[str, object]:
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise InputError(source, at=f"{at}, {key}", problem="not a mapping of names to values", remedy=_REMEDY)
    return value


def _list(source: str, at: str, parent: dict[str, object], key: str) -> list[object]:
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(source, at=f"{at}, {key}", problem="not a list", remedy=_REMEDY)
    return value
