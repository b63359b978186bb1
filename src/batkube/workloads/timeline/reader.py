"""Read events: a YAML list, in a file of its own or in a scenario, or Batsim's events file.

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

from batkube.files.yaml_reader import read_yaml, yaml_documents
from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.instants import Duration, Instant, duration, seconds
from batkube.text.label_syntax import label_value, qualified_name
from batkube.workloads import fields as require
from batkube.workloads.fields import Place
from batkube.workloads.files import read_bytes
from batkube.workloads.timeline import batsim_events
from batkube.workloads.timeline.entries import (
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

_SCHEDULE_KEYS = ("at", "every", "count", "until", "between", "for")
#: The keys of an action besides those of its schedule.
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
    """Read an events file in our format or Batsim's."""
    if batsim_events.is_batsim_events_file(read_bytes(path)):
        return batsim_events.read_batsim_events(path)
    content = read_yaml(path)
    if isinstance(content, Mapping) and set(content) == {"events"}:
        return parse_events(content["events"], Place(path) / "events", path.parent)
    return parse_events(content, Place(path), path.parent)


def resolve_files(events: object, folder: Path) -> object:
    """Resolve the path of an events file, or the file names in its entries, against `folder`."""
    if isinstance(events, str):
        return str(folder / events)
    return [_resolve_entry(entry, folder) for entry in events] if isinstance(events, list) else events


def _resolve_entry(entry: object, folder: Path) -> object:
    if not isinstance(entry, Mapping):
        return entry
    return {key: str(folder / value) if _is_file_name(value, key) else value for key, value in entry.items()}


def files_in_entries(entries: Sequence[object]) -> list[Path]:
    """Return the files that the entries refer to."""
    pairs = [pair for entry in entries if isinstance(entry, Mapping) for pair in entry.items()]
    return [Path(value) for key, value in pairs if _is_file_name(value, key)]


def files_in_events_file(path: Path) -> list[Path]:
    """Return the files that an events file refers to. Raises InputError."""
    if batsim_events.is_batsim_events_file(read_bytes(path)):
        return []
    content = read_yaml(path)
    entries = content.get("events") if isinstance(content, Mapping) else content
    return [path.parent / file for file in files_in_entries(entries)] if isinstance(entries, list) else []


def _is_file_name(value: object, key: object) -> TypeGuard[str]:
    """Return whether the value of this key is the name of a file with manifests or a platform."""
    return (
        key in (EventAction.APPLY, EventAction.DELETE, EventAction.ADD)
        and isinstance(value, str)
        and _FILE_NAME.fullmatch(value) is not None
    )


def parse_events(content: object, place: Place, folder: Path) -> tuple[EventEntry, ...]:
    """Parse a list of entries. File names in it are relative to `folder`."""
    if not isinstance(content, list):
        place.reject(
            "is not a list of events", "write `- at: 1000` and on the next line, for example, `  fail: node-3`"
        )
    return tuple(_entry(place[number], value, folder) for number, value in enumerate(content))


def _entry(place: Place, value: object, folder: Path) -> EventEntry:
    fields = require.mapping(place, value)
    actions = [action for action in EventAction if action in fields]
    if len(actions) != 1:
        others = [str(key) for key in fields if key not in _SCHEDULE_KEYS]
        problem = f"has {len(actions)} actions" if actions else f"has no known action (its keys: {', '.join(others)})"
        place.reject(problem, f"write exactly one of {_ACTION_NAMES}")
    (action,) = actions
    allowed = (action.value, *_SCHEDULE_KEYS, *_ACTION_KEYS.get(action, ()))
    for key in fields:
        if key not in allowed:
            (place / str(key)).reject(f"is not a key of `{action}`", f"the keys of `{action}` are {', '.join(allowed)}")
    duration_s = _duration_of_action(place / "for", action, fields.get("for"))
    schedule = _schedule(place, action, fields)
    nodes = _nodes(place / action, fields[action]) if action in NODE_ACTIONS else None
    notice = _duration(place / "notice", fields.get("notice", 120)) if action is EventAction.RECLAIM else NO_NOTICE
    return EventEntry(
        place,
        action,
        schedule,
        nodes,
        _DETAIL_READERS.get(action, _no_detail)(place, fields, folder),
        duration_s,
        notice,
    )


# Schedules


def _schedule(place: Place, action: EventAction, fields: Mapping[str, object]) -> EventSchedule:
    at = Instant(_duration(place / "at", fields.get("at", 0)))
    until = None if fields.get("until") is None else Instant(_duration(place / "until", fields["until"]))
    if until is not None and until < at:
        (place / "until").reject("is earlier than `at`", "write a later time, or an earlier `at`")
    if fields.get("between") is not None:
        return _random_schedule(place, action, fields, at, until)
    if "at" not in fields:
        place.reject("has no time", "add `at`, or `between` with a distribution of seconds")
    every = None if fields.get("every") is None else _duration(place / "every", fields["every"])
    count = None if fields.get("count") is None else require.positive_integer(place / "count", fields["count"])
    if every is None:
        for key in ("count", "until"):
            if fields.get(key) is not None:
                (place / key).reject(
                    "requires `every`", f"add `every`, the interval between two events, or remove `{key}`"
                )
        return EventSchedule(at)
    if every == 0:
        (place / "every").reject("is 0", "write the interval between two events, such as 1d")
    if action is EventAction.ADD and count is None and until is None:
        place.reject("adds machines without end", "limit it with `count` or `until`")
    return EventSchedule(at, every, count, until)


def _random_schedule(
    place: Place, action: EventAction, fields: Mapping[str, object], at: Instant, until: Instant | None
) -> EventSchedule:
    if action not in NODE_ACTIONS:
        (place / "between").reject(
            f"is drawn per node, but `{action}` does not act on nodes", "write `at` and `every` instead"
        )
    for key in ("every", "count"):
        if fields.get(key) is not None:
            (place / key).reject("cannot be combined with `between`", "remove one of the two")
    between = _distribution(place / "between", fields["between"])
    return EventSchedule(at, until=until, count=None, interval=between)


def _duration_of_action(place: Place, action: EventAction, value: object) -> Distribution | None:
    if value is None:
        return None
    if action not in INVERSE_ACTIONS:
        place.reject(
            f"cannot be used with `{action}`, which has no inverse", f"use `for` with {', '.join(INVERSE_ACTIONS)}"
        )
    return _distribution(place, value)


def _distribution(place: Place, value: object) -> Distribution:
    """Return a distribution of seconds. A duration such as `30m` is a constant distribution."""
    try:
        if isinstance(value, str) and ":" not in value:
            value = duration(value) / seconds(1)
        distribution = parse_distribution(value)  # type: ignore[arg-type]  # it checks the type
    except ValueError as error:
        place.reject(str(error))
    if distribution.name == "constant" and distribution.parameters[0] <= 0:
        place.reject(f"is {distribution.parameters[0]:g} s, but must be positive")
    return distribution


def _duration(place: Place, value: object) -> Duration:
    """Return a non-negative duration, written as a number of seconds or as, for example, `10m`."""
    if not isinstance(value, str):
        return require.duration(place, value)
    try:
        length = duration(value)
    except ValueError as error:
        place.reject(str(error), "write seconds since the start of the run, or 90s, 10m, 2h, 1d")
    return length


# Actions and their targets


def _nodes(place: Place, value: object) -> EventNodes:
    remedy = "write a node name, a list of names, machine ids as in 0-3 7, labels as in {zone: a}, or all"
    if value == "all":
        return EventNodes(is_all=True)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and _MACHINE_IDS.fullmatch(value):
        return EventNodes(ids=batsim_events.machine_ids(place, value))
    if isinstance(value, str) and value:
        return EventNodes(names=(value,))
    if isinstance(value, list) and value and all(isinstance(name, str) and name for name in value):
        return EventNodes(names=tuple(value))
    if isinstance(value, Mapping) and value and all(isinstance(label, str) for label in value.values()):
        return EventNodes(labels=dict(value))
    place.reject_type(value, "a selection of nodes", remedy)


def _no_detail(place: Place, fields: Mapping[str, object], folder: Path) -> None:
    return None


def _taint(place: Place, fields: Mapping[str, object], folder: Path) -> Taint:
    place, is_new = place / "with", EventAction.TAINT in fields
    text = require.string(place, fields.get("with"))
    match = _TAINT.fullmatch(text)
    effect = (match and match["effect"]) or ""
    if match is None or ((effect or is_new) and effect not in _EFFECTS):
        remedy = f"write key=value:Effect, with one of {', '.join(_EFFECTS)}" if is_new else "write key or key:Effect"
        place.reject(f"is {text!r}, which is not a taint", remedy)
    _check_label(place, match["key"], match["value"] or "")
    return Taint(match["key"], match["value"] or "", effect)


def _labels(place: Place, fields: Mapping[str, object], folder: Path) -> Mapping[str, str | None]:
    place = place / "with"
    labels: dict[str, str | None] = {}
    for key, value in require.mapping(place, fields.get("with")).items():
        labels[str(key)] = None if value is None else require.string(place / str(key), value)
        _check_label(place / str(key), str(key), labels[str(key)] or "")
    return labels


def _check_label(place: Place, key: str, value: str) -> None:
    """Apply the checks of kube-apiserver, which runs without an API server do not have."""
    for text, problems in ((key, qualified_name(key)), (value, label_value(value))):
        if problems:
            place.reject(f"has {text!r}: {problems[0]}")


def _added_machines(place: Place, fields: Mapping[str, object], folder: Path) -> AddedMachines:
    machines = require.string(place / "add", fields["add"])
    prefix = require.string(place / "names", fields.get("names", "added"))
    return AddedMachines(str(folder / machines) if _FILE_NAME.fullmatch(machines) else machines, prefix)


def _scaling(place: Place, fields: Mapping[str, object], folder: Path) -> Scaling:
    kind, name = _reference(place / "scale", fields["scale"])
    replicas = require.integer(place / "to", fields.get("to"))
    if replicas < 0:
        (place / "to").reject(f"is {replicas}, which is negative")
    return Scaling(kind, require.string(place / "namespace", fields.get("namespace", "default")), name, replicas)


def _reference(place: Place, value: object) -> tuple[str, str]:
    kind, slash, name = require.string(place, value).partition("/")
    if not slash or not kind or not name:
        place.reject(f"is {value!r}, which is not a reference to an object", "write Kind/name, as in Deployment/web")
    return kind, name


def _manifests(place: Place, fields: Mapping[str, object], folder: Path) -> tuple[Manifest, ...]:
    action = EventAction.APPLY if EventAction.APPLY in fields else EventAction.DELETE
    value, place = fields[action], place / action
    if _is_file_name(value, action):
        path = folder / value
        place = Place(path)
        value = [document for document in yaml_documents(path, read_bytes(path)) if document is not None]
    elif isinstance(value, str) and action is EventAction.DELETE:
        kind, name = _reference(place, value)
        namespace = require.string(place / "namespace", fields.get("namespace", "default"))
        return ({"kind": kind, "metadata": {"name": name, "namespace": namespace}},)
    manifests = value if isinstance(value, list) else [value]
    if not manifests:
        place.reject("contains no manifest", "add at least one object")
    return tuple(_manifest(place[number], manifest) for number, manifest in enumerate(manifests))


def _manifest(place: Place, value: object) -> Manifest:
    manifest = require.mapping(place, value)
    require.string(place / "apiVersion", manifest.get("apiVersion"))
    require.string(place / "kind", manifest.get("kind"))
    metadata = require.mapping(place / "metadata", manifest.get("metadata"))
    require.string(place / "metadata.name", metadata.get("name"))
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
