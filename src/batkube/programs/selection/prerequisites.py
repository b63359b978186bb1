"""Objects that must exist before a run's programs start: definitions of their kinds, and objects such as a queue.

Catalogue entries list them. They are applied as by a cluster administrator who installs a scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batkube.cluster.client import ApiError
from batkube.cluster.mapping import ResourceModel, node_capacity
from batkube.kernel.errors import InputError
from batkube.kernel.quantities import format_amount
from batkube.platforms.model import Machine
from batkube.programs.program import ExternalProgram
from batkube.programs.startup.command_lines import served_scheduler_names
from batkube.schedulers.build.records import DEFINITIONS
from batkube.schedulers.definitions import Definition, decode_definitions, read_definitions
from batkube.schedulers.named_programs import fill_placeholders

if TYPE_CHECKING:
    from batkube.api.manifests import ManifestClient

Prerequisites = Sequence[tuple[str, dict[str, Any]]]
"""Manifests in the order of their application, each with the name of the program that needs it."""


def prerequisites_of(
    programs: Iterable[ExternalProgram], machines: Sequence[Machine], model: ResourceModel
) -> Prerequisites:
    """Return the prerequisites of programs without duplicates, definitions first."""
    programs = list(programs)
    totals = _totals(machines, model)
    manifests: dict[tuple[str, str, str], tuple[str, dict[str, Any]]] = {}
    for program in programs:
        for definition in _definitions(program):
            manifests.setdefault(_identity(definition), (program.name, definition))
    for program in programs:
        values = {"scheduler-name": "".join(served_scheduler_names(program)[:1])}
        for template in program.start.objects:
            manifest = fill_placeholders(_expand_resources(template, totals), values)
            manifests.setdefault(_identity(manifest), (program.name, manifest))
    return list(manifests.values())


def install(prerequisites: Prerequisites, manifests: ManifestClient) -> None:
    """Apply the prerequisites. An object that the API rejects is an error in the catalogue."""
    for program, manifest in prerequisites:
        try:
            manifests.apply(manifest)
        except ApiError as error:
            location = f"{manifest['kind']} {manifest['metadata'].get('name')}"
            problem = f"is rejected by the API: {' '.join(error.message.split())}"
            remedy = "check `definitions` and `objects` of its entry in the catalogue"
            raise InputError(f"program {program!r}", at=location, problem=problem, remedy=remedy) from error


def _definitions(program: ExternalProgram) -> list[Definition]:
    """Return a program's definitions: from the user's folder, or as stored with the built program."""
    start = program.start
    if not start.definitions or start.folder:
        return read_definitions(Path(start.folder), start.definitions)
    path = program.binary.parent / DEFINITIONS
    if not path.is_file():
        problem = f"the definitions of its kinds are missing: {path} does not exist"
        remedy = f"remove {path.parent}, and `batkube schedulers build {program.name}`"
        raise InputError(f"program {program.name!r}", problem=problem, remedy=remedy)
    return decode_definitions(path.read_bytes())


def _identity(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return str(manifest["kind"]), str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _totals(machines: Sequence[Machine], model: ResourceModel) -> dict[str, str]:
    """Return the total amount of each resource on all nodes."""
    totals: Counter[str] = Counter()
    for machine in machines:
        totals.update(node_capacity(machine, model))
    return {resource: format_amount(resource, amount) for resource, amount in totals.items()}


def _expand_resources(value: Any, totals: Mapping[str, str]) -> Any:  # noqa: ANN401 - any YAML
    """Repeat each list item that contains `{resource}` for every resource."""
    if isinstance(value, dict):
        return {key: _expand_resources(item, totals) for key, item in value.items()}
    if isinstance(value, list):
        return [item for element in value for item in _expand(element, totals)]
    return value


def _expand(item: Any, totals: Mapping[str, str]) -> Iterator[Any]:  # noqa: ANN401 - any YAML
    inner = _expand_resources(item, totals)
    if inner != item or "{resource}" not in _strings(item):
        yield inner
        return
    for resource, total in totals.items():
        yield fill_placeholders(item, {"resource": resource, "total": total})


def _strings(value: Any) -> list[str]:  # noqa: ANN401 - any YAML
    """Return all texts in a value, at any depth."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []
