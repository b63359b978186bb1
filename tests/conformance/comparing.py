"""Finds the differences between the answers of a replay and the recorded ones, except those that are allowed.

Identities (uids, versions, generated names) cannot be equal, but must correspond one to one within a case, and versions
must be in the same order. This also checks that a write without a change creates no new version. The rules are listed
in docs/reference/conformance.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from conformance.client import is_plain_bookmark
from conformance.normalising import (
    IGNORED_KEYS,
    UNTOLD_KEYS_OF_VERSION,
    Token,
    is_age,
    is_generated_from,
    is_ip,
    is_ipv4,
    plain_text,
    tokens,
)
from conformance.placeholders import Json

ABSENT = "<absent>"


class Difference(NamedTuple):
    """One place where two answers differ."""

    path: str
    recorded: Json
    got: Json


class Pairs:
    """Which replayed identity corresponds to which recorded one; if it is not one to one, that is a difference."""

    def __init__(self) -> None:
        self._got: dict[str, str] = {}
        self._recorded: dict[str, str] = {}

    def fit(self, recorded: str, got: str) -> bool:
        """Add a pair; return whether it is consistent with all earlier ones."""
        same_got = self._got.setdefault(recorded, got) == got
        return self._recorded.setdefault(got, recorded) == recorded and same_got

    def renamed(self, text: str) -> str:
        """Return `text` with recorded identities replaced by the replayed ones."""
        for recorded, got in self._got.items():
            text = text.replace(recorded, got)
        return text


class Comparer:
    """Compares the answers of one case."""

    def __init__(self, *, compares_managed_fields: bool) -> None:
        self._ignored = IGNORED_KEYS if compares_managed_fields else IGNORED_KEYS | {"managedFields"}
        self._differences: list[Difference] = []
        self._uids, self._versions = Pairs(), Pairs()
        self._version_pairs: list[tuple[int, int]] = []
        #: Generated names: the replayed name by the recorded one.
        self._names: dict[str, str] = {}
        self._rules: dict[str, Callable[[str, str, str], bool]] = {
            "continue": lambda _, recorded, got: bool(recorded) == bool(got),
            "clusterIP": _are_ips,
            "clusterIPs": _are_ips,
            "description": lambda path, recorded, got: (
                (not got and ".columnDefinitions[" in path) or self._text(path, recorded, got)
            ),
            "token": lambda _, recorded, got: recorded.count(".") == got.count(".") == 2,
        }

    def differences(self, steps: Sequence[Mapping[str, Json]], results: Sequence[Json]) -> list[Difference]:
        """Return every difference, in the order of the steps."""
        for number, (step, result) in enumerate(zip(steps, results, strict=True)):
            self._step(f"steps.{number}", step, result)
        for earlier, later in itertools.pairwise(sorted(set(self._version_pairs))):
            if earlier[0] < later[0] and not earlier[1] < later[1]:
                self._differ("resourceVersion order", f"{earlier[0]} < {later[0]}", f"{earlier[1]} >= {later[1]}")
                break
        return self._differences

    def _differ(self, path: str, recorded: Json, got: Json) -> None:
        self._differences.append(Difference(path, recorded, got))

    # Steps

    def _step(self, path: str, step: Mapping[str, Json], result: Mapping[str, Json]) -> None:
        if "request" in step:
            self._learn_refused_name(step, result)
            if step.get("setup"):
                self._setup(path, step["response"], result)
            else:
                self._response(path, step["response"], result)
        elif "asked" in step:
            self._response(path, step["response"], result)
        elif "watch" in step:
            for number, (inner, got) in enumerate(zip(step.get("while", []), result["while"], strict=False)):
                self._step(f"{path}.while.{number}", inner, got)
            self._response(path, step, result)
            if step.get("until_closed") and step.get("closed") != result.get("closed"):
                self._differ(f"{path}.closed", step.get("closed"), result.get("closed"))
            self._events(path, step, result["events"])

    def _setup(self, path: str, recorded: Mapping[str, Json], got: Mapping[str, Json]) -> None:
        """Compare a preparatory step: only its success counts, but its identities are recorded."""
        if recorded["status"] != got["status"]:
            self._differ(f"{path}.status", recorded["status"], got["status"])
            return
        judged, self._differences = self._differences, []
        bodies = [answer.get("body") for answer in (recorded, got)]
        self._value(
            path, "", *({"metadata": body.get("metadata")} if isinstance(body, dict) else {} for body in bodies)
        )
        self._differences = judged

    def _response(self, path: str, recorded: Mapping[str, Json], got: Mapping[str, Json]) -> None:
        if recorded.get("status") != got.get("status"):
            self._differ(f"{path}.status", recorded.get("status"), got.get("status"))
        types = [re.sub(r"\s", "", answer.get("content_type", "")).lower() for answer in (recorded, got)]
        if types[0] != types[1]:
            self._differ(f"{path}.content_type", recorded.get("content_type"), got.get("content_type"))
        for name in ("warnings", "retry_after", "location", "body"):
            if name in recorded or name in got:
                self._value(f"{path}.{name}", name, recorded.get(name), got.get(name))

    def _events(self, path: str, step: Mapping[str, Json], got: Sequence[Json]) -> None:
        if step.get("bookmark_required") and not any(map(is_plain_bookmark, got)):
            self._differ(f"{path}.events", "at least one BOOKMARK", [_type(event) for event in got])
        expected, actual = (
            [event for event in events if not is_plain_bookmark(event)] for events in (step["events"], got)
        )
        if len(expected) != len(actual):
            self._differ(
                f"{path}.events.length", [_type(event) for event in expected], [_type(event) for event in actual]
            )
        for number, (recorded, event) in enumerate(zip(expected, actual, strict=False)):
            self._value(f"{path}.events[{number}]", "", recorded, event)

    def _learn_refused_name(self, step: Mapping[str, Json], result: Mapping[str, Json]) -> None:
        """Record a generated name that appears only in a failure (409 for a name that is in use)."""
        prefix = _inner(step["request"].get("body"), "metadata", "generateName")
        self._learn_name(prefix, *(_inner(each.get("body"), "details", "name") for each in (step["response"], result)))

    def _learn_name(self, prefix: Json, recorded: Json, got: Json) -> None:
        if prefix and is_generated_from(prefix, recorded) and is_generated_from(prefix, got):
            self._names[recorded] = got

    # Values

    def _value(self, path: str, key: str, recorded: Json, got: Json) -> None:
        if isinstance(recorded, dict) and isinstance(got, dict):
            self._object(path, recorded, got)
        elif isinstance(recorded, list) and isinstance(got, list):
            self._list(path, key, recorded, got)
        elif isinstance(recorded, str) and isinstance(got, str):
            rule = self._rules.get(key, self._text)
            if not (recorded == got or rule(path, recorded, got)):
                self._differ(path, recorded, got)
        elif key in ("nodePort", "healthCheckNodePort") and isinstance(recorded, int) and isinstance(got, int):
            if bool(recorded) != bool(got):
                self._differ(path, recorded, got)
        elif recorded != got or isinstance(recorded, bool) != isinstance(got, bool):
            self._differ(path, recorded, got)

    def _object(self, path: str, recorded: dict[str, Json], got: dict[str, Json]) -> None:
        if any(key.startswith("k:") for key in recorded):  # of managed fields, by the uid of an owner
            recorded = {self._uids.renamed(key): value for key, value in recorded.items()}
        if recorded.get("generateName") == got.get("generateName"):
            self._learn_name(recorded.get("generateName"), recorded.get("name"), got.get("name"))
        ignored = self._ignored | UNTOLD_KEYS_OF_VERSION if "gitVersion" in recorded else self._ignored
        for key in sorted(recorded.keys() | got.keys()):
            if key in ignored:
                continue
            below = f"{path}.{key}"
            if key not in recorded or key not in got:
                self._differ(below, recorded.get(key, ABSENT), got.get(key, ABSENT))
            elif key == "resourceVersion":
                self._version(below, recorded, got)
            else:
                self._value(below, key, recorded[key], got[key])

    def _list(self, path: str, key: str, recorded: list[Json], got: list[Json]) -> None:
        if key == "managedFields":
            # The server sorts them by time in whole seconds, so their order has no meaning.
            recorded, got = sorted(recorded, key=_manager), sorted(got, key=_manager)
        if len(recorded) != len(got):
            self._differ(f"{path}.length", len(recorded), len(got))
        for number, (one, other) in enumerate(zip(recorded, got, strict=False)):
            self._value(f"{path}[{number}]", key if key in ("clusterIPs", "cells") else "", one, other)

    def _version(self, path: str, recorded: dict[str, Json], got: dict[str, Json]) -> None:
        one, other = recorded["resourceVersion"], got["resourceVersion"]
        if one == other:
            return
        if not (_is_version(one) and _is_version(other)):
            self._differ(path, one, other)
        elif "uid" in recorded or "name" in recorded:  # the versions of lists and bookmarks may differ
            self._version_pairs.append((int(one), int(other)))
            if not self._versions.fit(one, other):
                self._differ(path, one, other)

    def _text(self, path: str, recorded: str, got: str) -> bool:
        if ".cells[" in path and ((is_age(recorded) and is_age(got)) or (is_ipv4(recorded) and is_ipv4(got))):
            return True
        for name, generated in self._names.items():
            recorded = recorded.replace(name, generated)
        recorded, got = plain_text(recorded), plain_text(got)
        (shape, ours), (got_shape, theirs) = tokens(recorded), tokens(got)
        return shape == got_shape and all(map(self._fits, ours, theirs))

    def _fits(self, recorded: Token, got: Token) -> bool:
        if recorded.kind == "uid":
            return self._uids.fit(recorded.text, got.text)
        return recorded.kind != "time" or len(recorded.text) == len(got.text)


def _are_ips(_: str, recorded: str, got: str) -> bool:
    return is_ip(recorded) and is_ip(got)


def _is_version(text: Json) -> bool:
    return isinstance(text, str) and text.isdigit() and text != "0"


def _manager(entry: Json) -> tuple[str, ...]:
    return tuple(str(entry.get(key)) for key in ("manager", "operation", "subresource", "apiVersion"))


def _inner(body: Json, outer: str, name: str) -> Json:
    part = body.get(outer) if isinstance(body, dict) else None
    return part.get(name) if isinstance(part, dict) else None


def _type(event: Json) -> Json:
    return event.get("type") if isinstance(event, dict) else event
