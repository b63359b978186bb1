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
from batkube.kernel.documents import read_yaml, yaml_documents
from batkube.kernel.instants import Duration, Instant, duration, seconds
from batkube.kernel.label_syntax import label_value, qualified_name
from batkube.workloads import batsim_events
from batkube.workloads import fields as take
from batkube.workloads.fields import Place
from batkube.workloads.files import read_bytes
from batkube.workloads.happenings import (
    NO_TIME,
    NODE_DEEDS,
    UNDOING,
    Addition,
    Deed,
    Detail,
    EventEntry,
    Manifest,
    NodeChoice,
    Scaling,
    Taint,
    When,
)

_WHEN_KEYS = ("at", "every", "count", "until", "between", "for")
#: The keys that a deed may have besides those that say when.
_MORE_KEYS = {
    Deed.TAINT: ("with",),
    Deed.UNTAINT: ("with",),
    Deed.LABEL: ("with",),
    Deed.ADD: ("names",),
    Deed.RECLAIM: ("notice",),
    Deed.DELETE: ("namespace",),
    Deed.SCALE: ("to", "namespace"),
}
_DEEDS = ", ".join(Deed)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT = re.compile(r"(?P<key>[^=:\s]+)(?:=(?P<value>[^=:\s]*))?(?::(?P<effect>\w+))?")
_IDS = re.compile(r"[0-9]+(-[0-9]+)?([ ,]+[0-9]+(-[0-9]+)?)*")
_FILE = re.compile(r".*\.(ya?ml|json|xml|csv)", re.IGNORECASE)


def read_events(path: Path) -> tuple[EventEntry, ...]:
    """Return the entries of an events file, ours or Batsim's."""
    if batsim_events.is_batsim(read_bytes(path)):
        return batsim_events.read_batsim_events(path)
    content = read_yaml(path)
    if isinstance(content, Mapping) and set(content) == {"events"}:
        return parse_events(content["events"], Place(path) / "events", path.parent)
    return parse_events(content, Place(path), path.parent)


def with_resolved_files(events: object, folder: Path) -> object:
    """Return an events file's path, or its entries, with the files they name seen from `folder`."""
    if isinstance(events, str):
        return str(folder / events)
    return [_resolved(entry, folder) for entry in events] if isinstance(events, list) else events


def _resolved(entry: object, folder: Path) -> object:
    if not isinstance(entry, Mapping):
        return entry
    return {key: str(folder / value) if _names_file(value, key) else value for key, value in entry.items()}


def files_in(entries: Sequence[object]) -> list[Path]:
    """Return the files that entries name."""
    pairs = [pair for entry in entries if isinstance(entry, Mapping) for pair in entry.items()]
    return [Path(value) for key, value in pairs if _names_file(value, key)]


def files_named(path: Path) -> list[Path]:
    """Return the files that an events file names. Raises InputError."""
    if batsim_events.is_batsim(read_bytes(path)):
        return []
    content = read_yaml(path)
    entries = content.get("events") if isinstance(content, Mapping) else content
    return [path.parent / file for file in files_in(entries)] if isinstance(entries, list) else []


def _names_file(value: object, key: object) -> TypeGuard[str]:
    """Return whether the value of a key is the name of a file: manifests, or a platform."""
    return key in (Deed.APPLY, Deed.DELETE, Deed.ADD) and isinstance(value, str) and _FILE.fullmatch(value) is not None


def parse_events(content: object, place: Place, folder: Path) -> tuple[EventEntry, ...]:
    """Return the entries of a list; files that they name are looked for in `folder`."""
    if not isinstance(content, list):
        place.refuse("is not a list of events", "write `- at: 1000` and below it, say, `fail: node-3`")
    return tuple(_entry(place[number], value, folder) for number, value in enumerate(content))


def _entry(place: Place, value: object, folder: Path) -> EventEntry:
    fields = take.mapping(place, value)
    deeds = [deed for deed in Deed if deed in fields]
    if len(deeds) != 1:
        others = [str(key) for key in fields if key not in _WHEN_KEYS]
        problem = f"does {len(deeds)} things at once" if deeds else f"does nothing that is known ({', '.join(others)})"
        place.refuse(problem, f"give an event exactly one of {_DEEDS}")
    (deed,) = deeds
    allowed = (deed.value, *_WHEN_KEYS, *_MORE_KEYS.get(deed, ()))
    for key in fields:
        if key not in allowed:
            (place / str(key)).refuse(f"means nothing to `{deed}`", f"its keys are {', '.join(allowed)}")
    lasts = _lasting(place / "for", deed, fields.get("for"))
    when = _when(place, deed, fields, lasts)
    nodes = _nodes(place / deed, fields[deed]) if deed in NODE_DEEDS else None
    notice = _time(place / "notice", fields.get("notice", 120)) if deed is Deed.RECLAIM else NO_TIME
    return EventEntry(place, deed, when, nodes, _DETAILS.get(deed, _no_detail)(place, fields, folder), lasts, notice)


# When


def _when(place: Place, deed: Deed, fields: Mapping[str, object], lasts: Distribution | None) -> When:
    at = Instant(_time(place / "at", fields.get("at", 0)))
    until = None if fields.get("until") is None else Instant(_time(place / "until", fields["until"]))
    if until is not None and until < at:
        (place / "until").refuse("is before the event begins", "write a later time, or an earlier `at`")
    if fields.get("between") is not None:
        return _drawn(place, deed, fields, at, until)
    if "at" not in fields:
        place.refuse("does not say when", "give `at`, or `between` and a distribution of seconds")
    every = None if fields.get("every") is None else _time(place / "every", fields["every"])
    count = None if fields.get("count") is None else take.positive_whole(place / "count", fields["count"])
    if every is None:
        for key in ("count", "until"):
            if fields.get(key) is not None:
                (place / key).refuse("is for events that come again", "say with `every` how often")
        return When(at)
    if every == 0:
        (place / "every").refuse("is no time at all", "write the time from one to the next, such as 1d")
    if deed is Deed.ADD and count is None and until is None:
        place.refuse("adds machines for ever", "end it with `count` or `until`")
    return When(at, every, count, until)


def _drawn(place: Place, deed: Deed, fields: Mapping[str, object], at: Instant, until: Instant | None) -> When:
    if deed not in NODE_DEEDS:
        (place / "between").refuse(
            f"is drawn for each node, and `{deed}` is not done to nodes", "give `at` and `every`"
        )
    for key in ("every", "count"):
        if fields.get(key) is not None:
            (place / key).refuse("does not go with `between`", "give the one or the other")
    between = _distribution(place / "between", fields["between"])
    return When(at, until=until, count=None, between=between)


def _lasting(place: Place, deed: Deed, value: object) -> Distribution | None:
    if value is None:
        return None
    if deed not in UNDOING:
        place.refuse(f"means nothing to `{deed}`, which nothing undoes", f"it is for {', '.join(UNDOING)}")
    return _distribution(place, value)


def _distribution(place: Place, value: object) -> Distribution:
    """Return a distribution of seconds; a time such as `30m` is one, too."""
    try:
        if isinstance(value, str) and ":" not in value:
            value = duration(value) / seconds(1)
        drawn = parse_distribution(value)  # type: ignore[arg-type]  # it refuses what is no distribution
    except ValueError as error:
        place.refuse(str(error))
    if drawn.name == "constant" and drawn.parameters[0] <= 0:
        place.refuse(f"is {drawn.parameters[0]:g} s; some time must pass")
    return drawn


def _time(place: Place, value: object) -> Duration:
    """Return a time that is not negative, in seconds or as people write it."""
    if not isinstance(value, str):
        return take.time(place, value)
    try:
        length = duration(value)
    except ValueError as error:
        place.refuse(str(error), "write seconds from the beginning of the run, or 90s, 10m, 2h, 1d")
    return length


# What


def _nodes(place: Place, value: object) -> NodeChoice:
    remedy = "write a node's name, a list of names, machine ids as in 0-3 7, labels as in {zone: a}, or all"
    if value == "all":
        return NodeChoice(is_all=True)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and _IDS.fullmatch(value):
        return NodeChoice(ids=batsim_events.machine_ids(place, value))
    if isinstance(value, str) and value:
        return NodeChoice(names=(value,))
    if isinstance(value, list) and value and all(isinstance(one, str) and one for one in value):
        return NodeChoice(names=tuple(value))
    if isinstance(value, Mapping) and value and all(isinstance(one, str) for one in value.values()):
        return NodeChoice(labels=dict(value))
    place.refuse_kind(value, "a choice of nodes", remedy)


def _no_detail(place: Place, fields: Mapping[str, object], folder: Path) -> None:
    return None


def _taint(place: Place, fields: Mapping[str, object], folder: Path) -> Taint:
    place, is_new = place / "with", Deed.TAINT in fields
    written = take.text(place, fields.get("with"))
    match = _TAINT.fullmatch(written)
    effect = (match and match["effect"]) or ""
    if match is None or ((effect or is_new) and effect not in _EFFECTS):
        remedy = f"write key=value:Effect, with one of {', '.join(_EFFECTS)}" if is_new else "write key or key:Effect"
        place.refuse(f"is {written!r}, which is not a taint", remedy)
    _check_label(place, match["key"], match["value"] or "")
    return Taint(match["key"], match["value"] or "", effect)


def _labels(place: Place, fields: Mapping[str, object], folder: Path) -> Mapping[str, str | None]:
    place = place / "with"
    labels: dict[str, str | None] = {}
    for key, value in take.mapping(place, fields.get("with")).items():
        labels[str(key)] = None if value is None else take.text(place / str(key), value)
        _check_label(place / str(key), str(key), labels[str(key)] or "")
    return labels


def _check_label(place: Place, key: str, value: str) -> None:
    """Refuse what the API would refuse on a node; where there is none, nobody else would."""
    for text, problems in ((key, qualified_name(key)), (value, label_value(value))):
        if problems:
            place.refuse(f"has {text!r}: {problems[0]}")


def _addition(place: Place, fields: Mapping[str, object], folder: Path) -> Addition:
    machines = take.text(place / "add", fields["add"])
    prefix = take.text(place / "names", fields.get("names", "added"))
    return Addition(str(folder / machines) if _FILE.fullmatch(machines) else machines, prefix)


def _scaling(place: Place, fields: Mapping[str, object], folder: Path) -> Scaling:
    kind, name = _reference(place / "scale", fields["scale"])
    replicas = take.whole(place / "to", fields.get("to"))
    if replicas < 0:
        (place / "to").refuse(f"is {replicas}, which is negative")
    return Scaling(kind, take.text(place / "namespace", fields.get("namespace", "default")), name, replicas)


def _reference(place: Place, value: object) -> tuple[str, str]:
    kind, slash, name = take.text(place, value).partition("/")
    if not slash or not kind or not name:
        place.refuse(f"is {value!r}, which names no object", "write Kind/name, as in Deployment/web")
    return kind, name


def _manifests(place: Place, fields: Mapping[str, object], folder: Path) -> tuple[Manifest, ...]:
    deed = Deed.APPLY if Deed.APPLY in fields else Deed.DELETE
    value, place = fields[deed], place / deed
    if _names_file(value, deed):
        path = folder / value
        place = Place(path)
        value = [document for document in yaml_documents(path, read_bytes(path)) if document is not None]
    elif isinstance(value, str) and deed is Deed.DELETE:
        kind, name = _reference(place, value)
        namespace = take.text(place / "namespace", fields.get("namespace", "default"))
        return ({"kind": kind, "metadata": {"name": name, "namespace": namespace}},)
    listed = value if isinstance(value, list) else [value]
    if not listed:
        place.refuse("has no manifest", "write the objects into it")
    return tuple(_manifest(place[number], one) for number, one in enumerate(listed))


def _manifest(place: Place, value: object) -> Manifest:
    manifest = take.mapping(place, value)
    take.text(place / "apiVersion", manifest.get("apiVersion"))
    take.text(place / "kind", manifest.get("kind"))
    metadata = take.mapping(place / "metadata", manifest.get("metadata"))
    take.text(place / "metadata.name", metadata.get("name"))
    return manifest


_DETAILS: dict[Deed, Callable[[Place, Mapping[str, object], Path], Detail]] = {
    Deed.TAINT: _taint,
    Deed.UNTAINT: _taint,
    Deed.LABEL: _labels,
    Deed.ADD: _addition,
    Deed.SCALE: _scaling,
    Deed.APPLY: _manifests,
    Deed.DELETE: _manifests,
}
