"""What must be there before a run's programs start: definitions of their kinds, and objects such as a default queue.

Their entries in the catalogue say so. It is applied as a cluster's administrator would have, who installs a scheduler.
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
"""Manifests, each with the program that needs it, in the order in which they are applied."""


def prerequisites_of(
    programs: Iterable[ExternalProgram], machines: Sequence[Machine], model: ResourceModel
) -> Prerequisites:
    """Return what programs need: definitions first, and each once, though several programs may have it."""
    programs = list(programs)
    totals = _totals(machines, model)
    named: dict[tuple[str, str, str], tuple[str, dict[str, Any]]] = {}
    for program in programs:
        for definition in _definitions(program):
            named.setdefault(_identity(definition), (program.name, definition))
    for program in programs:
        places = {"scheduler-name": "".join(served_scheduler_names(program)[:1])}
        for fields in program.start.objects:
            manifest = fill_placeholders(_expand_resources(fields, totals), places)
            named.setdefault(_identity(manifest), (program.name, manifest))
    return list(named.values())


def install(prerequisites: Prerequisites, manifests: ManifestClient) -> None:
    """Apply what programs need; what the API refuses is a mistake in the catalogue."""
    for program, fields in prerequisites:
        try:
            manifests.apply(fields)
        except ApiError as refusal:
            place = f"{fields['kind']} {fields['metadata'].get('name')}"
            problem = f"is refused by the API: {' '.join(refusal.message.split())}"
            remedy = "check `definitions` and `objects` of its entry in the catalogue"
            raise InputError(f"program {program!r}", at=place, problem=problem, remedy=remedy) from refusal


def _definitions(program: ExternalProgram) -> list[Definition]:
    """Return the definitions of a program's kinds: from the user's folder, or as they were kept with the program."""
    start = program.start
    if not start.definitions or start.folder:
        return read_definitions(Path(start.folder), start.definitions)
    path = program.binary.parent / DEFINITIONS
    if not path.is_file():
        problem = f"the definitions of its kinds are missing: {path} is not there"
        remedy = f"remove {path.parent}, and `batkube schedulers build {program.name}`"
        raise InputError(f"program {program.name!r}", problem=problem, remedy=remedy)
    return decode_definitions(path.read_bytes())


def _identity(fields: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = fields["metadata"]
    return str(fields["kind"]), str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _totals(machines: Sequence[Machine], model: ResourceModel) -> dict[str, str]:
    """Return how much of each resource the nodes offer together."""
    totals: Counter[str] = Counter()
    for machine in machines:
        totals.update(node_capacity(machine, model))
    return {resource: format_amount(resource, amount) for resource, amount in totals.items()}


def _expand_resources(value: Any, totals: Mapping[str, str]) -> Any:  # noqa: ANN401 - any YAML
    """Return an object in which each item of a list that holds `{resource}` stands once for every resource."""
    if isinstance(value, dict):
        return {key: _expand_resources(each, totals) for key, each in value.items()}
    if isinstance(value, list):
        return [item for each in value for item in _expand(each, totals)]
    return value


def _expand(item: Any, totals: Mapping[str, str]) -> Iterator[Any]:  # noqa: ANN401 - any YAML
    inner = _expand_resources(item, totals)
    if inner != item or "{resource}" not in _strings(item):
        yield inner
        return
    for resource, total in totals.items():
        yield fill_placeholders(item, {"resource": resource, "total": total})


def _strings(value: Any) -> list[str]:  # noqa: ANN401 - any YAML
    """Return the texts in a value, at any depth."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in _strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in _strings(each)]
    return [value] if isinstance(value, str) else []
