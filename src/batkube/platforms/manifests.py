"""Reads platforms from Kubernetes Node manifests, as `kubectl get nodes -o yaml` prints them.

The capacity of a machine is `status.allocatable`, as for kube-scheduler (NodeInfo.SetNode in
pkg/scheduler/framework/types.go), and by default `status.capacity`, as in the API server (SetDefaults_NodeStatus in
pkg/apis/core/v1/defaults.go). Taints and cordons (`spec.unschedulable`) are kept; as they repel the pods of jobs, both
are noted. So is every field that the simulated nodes do not have (`node_fields.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from batkube.files.yaml_reader import yaml_documents
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.quantities import CPU, parse_quantity
from batkube.platforms.builder import build_platform, parse_amount, with_default_pods
from batkube.platforms.model import REPELLING_EFFECTS, Machine, Platform
from batkube.platforms.node_fields import REMEDY, NodeFields

CORDONED = FidelityNote(
    "platform", "nodes that are cordoned (spec.unschedulable) take no jobs until they are uncordoned"
)
TAINTED = FidelityNote("platform", "nodes with taints take no jobs, because the pods of jobs have no tolerations")
#: The notes that are relevant only if the workload has jobs.
JOB_NOTES = (CORDONED, TAINTED)
_TAINT_EFFECTS = (*REPELLING_EFFECTS, "PreferNoSchedule")
_TAINT_FIELDS = ("key", "value", "effect")
_LISTS = ("List", "NodeList")


def parse_manifests(path: Path, text: str) -> Platform:
    """Return the platform of a manifest file, with its nodes in the order of the file. Raise InputError."""
    source = str(path)
    documents = _json_documents(source, text) if path.suffix.lower() == ".json" else yaml_documents(path, text)
    nodes = [
        pair
        for number, document in enumerate(documents, 1)
        if document is not None
        for pair in _nodes(source, f"document {number}", document)
    ]
    fields = NodeFields(source)
    machines = [_machine(source, at, number, node, fields) for number, (at, node) in enumerate(nodes)]
    cordoned = sum(machine.is_cordoned for machine in machines)
    if machines and cordoned == len(machines):
        raise InputError(
            source,
            problem="every node is cordoned (spec.unschedulable), so no job can run",
            remedy="uncordon nodes: remove spec.unschedulable",
        )
    tainted = sum(not machine.takes_any_pod and not machine.is_cordoned for machine in machines)
    counts = (
        (CORDONED, cordoned),
        (TAINTED, tainted),
        *((dropped_field_note(name), n) for name, n in fields.dropped.items()),
    )
    return build_platform(source, machines, remedy=REMEDY, notes=tuple(pair for pair in counts if pair[1]))


def dropped_field_note(field: str) -> FidelityNote:
    """Return the note for a manifest field that the simulated nodes do not have."""
    return FidelityNote("platform", f"simulated nodes do not have this field of the manifests: {field}")


def _json_documents(source: str, text: str) -> list[object]:
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as error:
        raise InputError(source, at=f"line {error.lineno}", problem=f"not JSON: {error.msg}", remedy=REMEDY) from None
    except (ValueError, RecursionError) as error:  # thousands of digits in a number, or of nested brackets
        raise InputError(source, problem=f"JSON that cannot be parsed: {error}", remedy=REMEDY) from None


def _nodes(source: str, at: str, document: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the Node objects of a document, including those in lists, with their places."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if isinstance(document, dict) and kind == "Node":
        yield at, document
    elif isinstance(document, dict) and kind in _LISTS:
        for number, item in enumerate(_list(source, at, document, "items")):
            yield from _nodes(source, f"{at}, items[{number}]", item)
    else:
        problem = f"contains a {kind}, not a Node" if kind else "is not a Kubernetes object"
        raise InputError(source, at=at, problem=problem, remedy=REMEDY)


def _machine(source: str, at: str, number: int, node: dict[str, object], fields: NodeFields) -> Machine:
    metadata, spec, status = (_mapping(source, at, node, part) for part in ("metadata", "spec", "status"))
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(source, at=f"{at}, metadata.name", problem="the Node has no name", remedy=REMEDY)
    at = f"{at}, node {name!r}"
    texts, amounts = {}, {}
    for field in ("capacity", "allocatable"):
        texts[field], amounts[field] = _amounts(source, at, status, field)
    capacity = amounts["allocatable"] or amounts["capacity"]
    if CPU not in capacity:
        raise InputError(
            source, at=f"{at}, status", problem="contains no cpu", remedy="add status.allocatable.cpu, such as '4'"
        )
    sections = fields.extract(at, node)
    sections["status"].update({field: text for field, text in texts.items() if text})
    return Machine(
        id=number,
        name=name,
        capacity=with_default_pods(capacity),
        labels=_labels(source, at, metadata),
        taints=_taints(source, at, spec, fields),
        node=sections,
    )


def _amounts(source: str, at: str, status: dict[str, object], field: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return the quantities of a field of the status, in the API server's canonical form and as numbers."""
    texts, amounts = {}, {}
    for resource, value in _mapping(source, at, status, field).items():
        amounts[resource] = parse_amount(source, f"{at}, status.{field}.{resource}", resource, value)
        texts[resource] = str(parse_quantity(cast(str | int | float, value)))
    return texts, amounts


def _labels(source: str, at: str, metadata: dict[str, object]) -> dict[str, str]:
    labels = {}
    for key, value in _mapping(source, at, metadata, "labels").items():
        if not isinstance(value, str):
            raise InputError(source, at=f"{at}, label {key}", problem=f"{value!r} is not text", remedy="quote it")
        labels[key] = value
    return labels


def _taints(source: str, at: str, spec: dict[str, object], fields: NodeFields) -> tuple[dict[str, str], ...]:
    taints = []
    for number, taint in enumerate(_list(source, at, spec, "taints")):
        if not isinstance(taint, dict) or not taint.get("key") or taint.get("effect") not in _TAINT_EFFECTS:
            raise InputError(
                source,
                at=f"{at}, spec.taints[{number}]",
                problem="not a valid taint",
                remedy=f"write a key and an effect, one of {', '.join(_TAINT_EFFECTS)}",
            )
        fields.dropped.update(f"spec.taints.{key}" for key in taint if key not in _TAINT_FIELDS)
        taints.append({key: str(taint[key]) for key in _TAINT_FIELDS if taint.get(key) is not None})
    return tuple(taints)


def _mapping(source: str, at: str, parent: dict[str, object], key: str) -> dict[str, object]:
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise InputError(source, at=f"{at}, {key}", problem="not a mapping of names to values", remedy=REMEDY)
    return value


def _list(source: str, at: str, parent: dict[str, object], key: str) -> list[object]:
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(source, at=f"{at}, {key}", problem="not a list", remedy=REMEDY)
    return value
