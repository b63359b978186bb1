"""Reading what is to happen: a list in YAML, of its own file or within a scenario, or Batsim's events file.

- at: 1000
  fail: node-3
  for: 30m
- between: exponential:2592000
  fail: all
  for: exponential:3600
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.files.yaml_reader import read_yaml, yaml_documents
from batkube.kernel.instants import Duration, Instant, duration, seconds
from batkube.kernel.text.label_syntax import label_value, qualified_name
from batkube.workloads import fields as take
from batkube.workloads.events import batsim_events
from batkube.workloads.events.entries import (
    INVERSE_ACTIONS,
    NO_NOTICE,
    NODE_ACTIONS,
    ActionDetail,
    AddedMachines,
    EventAction,
    EventEntry,
    EventNodes,
    EventSchedule,
    Manifest,
    Scaling,
    Taint,
)
from batkube.workloads.fields import Place
from batkube.workloads.files import read_bytes

_SCHEDULE_KEYS = ("at", "every", "count", "until", "between", "for")
#: The keys that a deed may have besides those that say when.
_ACTION_KEYS = {
    EventAction.TAINT: ("with",),
    EventAction.UNTAINT: ("with",),
    EventAction.LABEL: ("with",),
    EventAction.ADD: ("names",),
    EventAction.RECLAIM: ("notice",),
    EventAction.DELETE: ("namespace",),
    EventAction.SCALE: ("to", "namespace"),
}
_ACTION_NAMES = ", ".join(EventAction)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT = re.compile(r"(?P<key>[^=:\s]+)(?:=(?P<value>[^=:\s]*))?(?::(?P<effect>\w+))?")
_MACHINE_IDS = re.compile(r"[0-9]+(-[0-9]+)?([ ,]+[0-9]+(-[0-9]+)?)*")
_FILE_NAME = re.compile(r".*\.(ya?ml|json|xml|csv)", re.IGNORECASE)


def read_events(path: Path) -> tuple[EventEntry, ...]:
    """Return the entries of an events file, ours or Batsim's."""
    if batsim_events.is_batsim_events_file(read_bytes(path)):
        return batsim_events.read_batsim_events(path)
    content = read_yaml(path)
    if isinstance(content, Mapping) and set(content) == {"events"}:
        return parse_events(content["events"], Place(path) / "events", path.parent)
    return parse_events(content, Place(path), path.parent)


def resolve_files(events: object, folder: Path) -> object:
    """Return an events file's path, or its entries, with the files they name seen from `folder`."""
    if isinstance(events, str):
        return str(folder / events)
    return [_resolve_entry(entry, folder) for entry in events] if isinstance(events, list) else events


def _resolve_entry(entry: object, folder: Path) -> object:
    if not isinstance(entry, Mapping):
        return entry
    return {key: str(folder / value) if _is_file_name(value, key) else value for key, value in entry.items()}


def files_in_entries(entries: Sequence[object]) -> list[Path]:
    """Return the files that entries name."""
    pairs = [pair for entry in entries if isinstance(entry, Mapping) for pair in entry.items()]
    return [Path(value) for key, value in pairs if _is_file_name(value, key)]


def files_in_events_file(path: Path) -> list[Path]:
    """Return the files that an events file names. Raises InputError."""
    if batsim_events.is_batsim_events_file(read_bytes(path)):
        return []
    content = read_yaml(path)
    entries = content.get("events") if isinstance(content, Mapping) else content
    return [path.parent / file for file in files_in_entries(entries)] if isinstance(entries, list) else []


def _is_file_name(value: object, key: object) -> TypeGuard[str]:
    """Return whether the value of a key is the name of a file: manifests, or a platform."""
    return (
        key in (EventAction.APPLY, EventAction.DELETE, EventAction.ADD)
        and isinstance(value, str)
        and _FILE_NAME.fullmatch(value) is not None
    )


def parse_events(content: object, place: Place, folder: Path) -> tuple[EventEntry, ...]:
    """Return the entries of a list; files that they name are looked for in `folder`."""
    if not isinstance(content, list):
        place.reject("is not a list of events", "write `- at: 1000` and below it, say, `fail: node-3`")
    return tuple(_entry(place[number], value, folder) for number, value in enumerate(content))


def _entry(place: Place, value: object, folder: Path) -> EventEntry:
    fields = take.mapping(place, value)
    deeds = [deed for deed in EventAction if deed in fields]
    if len(deeds) != 1:
        others = [str(key) for key in fields if key not in _SCHEDULE_KEYS]
        problem = f"does {len(deeds)} things at once" if deeds else f"does nothing that is known ({', '.join(others)})"
        place.reject(problem, f"give an event exactly one of {_ACTION_NAMES}")
    (deed,) = deeds
    allowed = (deed.value, *_SCHEDULE_KEYS, *_ACTION_KEYS.get(deed, ()))
    for key in fields:
        if key not in allowed:
            (place / str(key)).reject(f"means nothing to `{deed}`", f"its keys are {', '.join(allowed)}")
    lasts = _duration_of_action(place / "for", deed, fields.get("for"))
    when = _schedule(place, deed, fields, lasts)
    nodes = _nodes(place / deed, fields[deed]) if deed in NODE_ACTIONS else None
    notice = _duration(place / "notice", fields.get("notice", 120)) if deed is EventAction.RECLAIM else NO_NOTICE
    return EventEntry(
        place, deed, when, nodes, _DETAIL_READERS.get(deed, _no_detail)(place, fields, folder), lasts, notice
    )


# When


def _schedule(
    place: Place, deed: EventAction, fields: Mapping[str, object], lasts: Distribution | None
) -> EventSchedule:
    at = Instant(_duration(place / "at", fields.get("at", 0)))
    until = None if fields.get("until") is None else Instant(_duration(place / "until", fields["until"]))
    if until is not None and until < at:
        (place / "until").reject("is before the event begins", "write a later time, or an earlier `at`")
    if fields.get("between") is not None:
        return _random_schedule(place, deed, fields, at, until)
    if "at" not in fields:
        place.reject("does not say when", "give `at`, or `between` and a distribution of seconds")
    every = None if fields.get("every") is None else _duration(place / "every", fields["every"])
    count = None if fields.get("count") is None else take.positive_integer(place / "count", fields["count"])
    if every is None:
        for key in ("count", "until"):
            if fields.get(key) is not None:
                (place / key).reject("is for events that come again", "say with `every` how often")
        return EventSchedule(at)
    if every == 0:
        (place / "every").reject("is no time at all", "write the time from one to the next, such as 1d")
    if deed is EventAction.ADD and count is None and until is None:
        place.reject("adds machines for ever", "end it with `count` or `until`")
    return EventSchedule(at, every, count, until)


def _random_schedule(
    place: Place, deed: EventAction, fields: Mapping[str, object], at: Instant, until: Instant | None
) -> EventSchedule:
    if deed not in NODE_ACTIONS:
        (place / "between").reject(
            f"is drawn for each node, and `{deed}` is not done to nodes", "give `at` and `every`"
        )
    for key in ("every", "count"):
        if fields.get(key) is not None:
            (place / key).reject("does not go with `between`", "give the one or the other")
    between = _distribution(place / "between", fields["between"])
    return EventSchedule(at, until=until, count=None, interval=between)


def _duration_of_action(place: Place, deed: EventAction, value: object) -> Distribution | None:
    if value is None:
        return None
    if deed not in INVERSE_ACTIONS:
        place.reject(f"means nothing to `{deed}`, which nothing undoes", f"it is for {', '.join(INVERSE_ACTIONS)}")
    return _distribution(place, value)


def _distribution(place: Place, value: object) -> Distribution:
    """Return a distribution of seconds; a time such as `30m` is one, too."""
    try:
        if isinstance(value, str) and ":" not in value:
            value = duration(value) / seconds(1)
        drawn = parse_distribution(value)  # type: ignore[arg-type]  # it refuses what is no distribution
    except ValueError as error:
        place.reject(str(error))
    if drawn.name == "constant" and drawn.parameters[0] <= 0:
        place.reject(f"is {drawn.parameters[0]:g} s; some time must pass")
    return drawn


def _duration(place: Place, value: object) -> Duration:
    """Return a time that is not negative, in seconds or as people write it."""
    if not isinstance(value, str):
        return take.duration(place, value)
    try:
        length = duration(value)
    except ValueError as error:
        place.reject(str(error), "write seconds from the beginning of the run, or 90s, 10m, 2h, 1d")
    return length


# What


def _nodes(place: Place, value: object) -> EventNodes:
    remedy = "write a node's name, a list of names, machine ids as in 0-3 7, labels as in {zone: a}, or all"
    if value == "all":
        return EventNodes(is_all=True)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and _MACHINE_IDS.fullmatch(value):
        return EventNodes(ids=batsim_events.machine_ids(place, value))
    if isinstance(value, str) and value:
        return EventNodes(names=(value,))
    if isinstance(value, list) and value and all(isinstance(one, str) and one for one in value):
        return EventNodes(names=tuple(value))
    if isinstance(value, Mapping) and value and all(isinstance(one, str) for one in value.values()):
        return EventNodes(labels=dict(value))
    place.reject_type(value, "a choice of nodes", remedy)


def _no_detail(place: Place, fields: Mapping[str, object], folder: Path) -> None:
    return None


def _taint(place: Place, fields: Mapping[str, object], folder: Path) -> Taint:
    place, is_new = place / "with", EventAction.TAINT in fields
    written = take.string(place, fields.get("with"))
    match = _TAINT.fullmatch(written)
    effect = (match and match["effect"]) or ""
    if match is None or ((effect or is_new) and effect not in _EFFECTS):
        remedy = f"write key=value:Effect, with one of {', '.join(_EFFECTS)}" if is_new else "write key or key:Effect"
        place.reject(f"is {written!r}, which is not a taint", remedy)
    _check_label(place, match["key"], match["value"] or "")
    return Taint(match["key"], match["value"] or "", effect)


def _labels(place: Place, fields: Mapping[str, object], folder: Path) -> Mapping[str, str | None]:
    place = place / "with"
    labels: dict[str, str | None] = {}
    for key, value in take.mapping(place, fields.get("with")).items():
        labels[str(key)] = None if value is None else take.string(place / str(key), value)
        _check_label(place / str(key), str(key), labels[str(key)] or "")
    return labels


def _check_label(place: Place, key: str, value: str) -> None:
    """Refuse what the API would refuse on a node; where there is none, nobody else would."""
    for text, problems in ((key, qualified_name(key)), (value, label_value(value))):
        if problems:
            place.reject(f"has {text!r}: {problems[0]}")


def _added_machines(place: Place, fields: Mapping[str, object], folder: Path) -> AddedMachines:
    machines = take.string(place / "add", fields["add"])
    prefix = take.string(place / "names", fields.get("names", "added"))
    return AddedMachines(str(folder / machines) if _FILE_NAME.fullmatch(machines) else machines, prefix)


def _scaling(place: Place, fields: Mapping[str, object], folder: Path) -> Scaling:
    kind, name = _reference(place / "scale", fields["scale"])
    replicas = take.integer(place / "to", fields.get("to"))
    if replicas < 0:
        (place / "to").reject(f"is {replicas}, which is negative")
    return Scaling(kind, take.string(place / "namespace", fields.get("namespace", "default")), name, replicas)


def _reference(place: Place, value: object) -> tuple[str, str]:
    kind, slash, name = take.string(place, value).partition("/")
    if not slash or not kind or not name:
        place.reject(f"is {value!r}, which names no object", "write Kind/name, as in Deployment/web")
    return kind, name


def _manifests(place: Place, fields: Mapping[str, object], folder: Path) -> tuple[Manifest, ...]:
    deed = EventAction.APPLY if EventAction.APPLY in fields else EventAction.DELETE
    value, place = fields[deed], place / deed
    if _is_file_name(value, deed):
        path = folder / value
        place = Place(path)
        value = [document for document in yaml_documents(path, read_bytes(path)) if document is not None]
    elif isinstance(value, str) and deed is EventAction.DELETE:
        kind, name = _reference(place, value)
        namespace = take.string(place / "namespace", fields.get("namespace", "default"))
        return ({"kind": kind, "metadata": {"name": name, "namespace": namespace}},)
    listed = value if isinstance(value, list) else [value]
    if not listed:
        place.reject("has no manifest", "write the objects into it")
    return tuple(_manifest(place[number], one) for number, one in enumerate(listed))


def _manifest(place: Place, value: object) -> Manifest:
    manifest = take.mapping(place, value)
    take.string(place / "apiVersion", manifest.get("apiVersion"))
    take.string(place / "kind", manifest.get("kind"))
    metadata = take.mapping(place / "metadata", manifest.get("metadata"))
    take.string(place / "metadata.name", metadata.get("name"))
    return manifest


_DETAIL_READERS: dict[EventAction, Callable[[Place, Mapping[str, object], Path], ActionDetail]] = {
    EventAction.TAINT: _taint,
    EventAction.UNTAINT: _taint,
    EventAction.LABEL: _labels,
    EventAction.ADD: _added_machines,
    EventAction.SCALE: _scaling,
    EventAction.APPLY: _manifests,
    EventAction.DELETE: _manifests,
}
