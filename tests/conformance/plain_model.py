"""A model of the API's guarantees about writes, in plain dictionaries; random sequences are compared with it.

Objects have two maps, `data` and `labels`, and a set of finalizers. Entries have owners, by the rules of server-side
apply for maps of single values: a manager that changes an entry becomes its only owner, appliers of equal values share
it, and an entry that its last owner no longer applies is removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Maps = dict[str, dict[str, str]]
Entry = tuple[str, str]
"""A map and a key in it."""

UPDATER = ("tests", "Update")


@dataclass
class Modelled:
    """One object."""

    maps: Maps
    finalizers: list[str]
    is_deleting: bool = False
    #: The managers of each entry.
    owners: dict[Entry, set[tuple[str, str]]] = field(default_factory=dict)

    def entries(self) -> dict[Entry, str]:
        """Return every entry with its value."""
        return {(name, key): value for name, values in self.maps.items() for key, value in values.items()}


class Conflict(Exception):
    """Another manager owns the entry to be changed (409)."""


class Model:
    """All objects, by name."""

    def __init__(self) -> None:
        self.objects: dict[str, Modelled] = {}

    def create(self, name: str, maps: Maps, finalizers: list[str]) -> int:
        """Return the status of a POST."""
        if name in self.objects:
            return 409
        made = Modelled({"data": {}, "labels": {}}, list(finalizers))
        self.objects[name] = made
        self._write(name, maps, made.finalizers)
        return 201

    def update(self, name: str, maps: Maps, finalizers: list[str]) -> int:
        """Return the status of a write that replaces the maps."""
        held = self.objects.get(name)
        if held is None:
            return 404
        if held.is_deleting and set(finalizers) - set(held.finalizers):
            return 422
        self._write(name, maps, list(finalizers))
        return 200

    def patch(self, name: str, changes: dict[str, dict[str, str | None]]) -> int:
        """Return the status of a merge patch of the maps: None removes."""
        held = self.objects.get(name)
        if held is None:
            return 404
        maps = {
            place: {key: value for key, value in {**values, **changes.get(place, {})}.items() if value is not None}
            for place, values in held.maps.items()
        }
        return self.update(name, maps, held.finalizers)

    def apply(self, name: str, manager: str, maps: Maps, *, force: bool) -> int:
        """Return the status of an apply."""
        me = (manager, "Apply")
        held = self.objects.get(name)
        if held is None:
            self.objects[name] = Modelled({"data": {}, "labels": {}}, [])
            self.apply(name, manager, maps, force=False)
            return 201
        wanted = {(place, key): value for place, values in maps.items() for key, value in values.items()}
        present = held.entries()
        contested = [
            entry
            for entry, value in wanted.items()
            if present.get(entry) != value and held.owners.get(entry, set()) - {me}
        ]
        if contested and not force:
            return 409
        for entry in [entry for entry in present if me in held.owners[entry] and entry not in wanted]:
            held.owners[entry].discard(me)
            if not held.owners[entry]:
                self._remove(held, entry)
        for entry, value in wanted.items():
            if present.get(entry) != value:
                held.owners[entry] = {me}
            held.owners.setdefault(entry, set()).add(me)
            held.maps[entry[0]][entry[1]] = value
        return 200

    def delete(self, name: str) -> int:
        """Return the status of a DELETE."""
        held = self.objects.get(name)
        if held is None:
            return 404
        if held.finalizers:
            held.is_deleting = True
        else:
            del self.objects[name]
        return 200

    def _write(self, name: str, maps: Maps, finalizers: list[str]) -> None:
        held = self.objects[name]
        before = held.entries()
        held.maps = {place: dict(maps.get(place, {})) for place in ("data", "labels")}
        after = held.entries()
        for entry in before.keys() - after.keys():
            held.owners.pop(entry, None)
        for entry, value in after.items():
            if before.get(entry) != value:
                held.owners[entry] = {UPDATER}
        held.finalizers = finalizers
        if held.is_deleting and not finalizers:
            del self.objects[name]

    @staticmethod
    def _remove(held: Modelled, entry: Entry) -> None:
        del held.maps[entry[0]][entry[1]]
        del held.owners[entry]
