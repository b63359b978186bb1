"""Custom objects that a run waits for because they have work to do.

Cluster-scoped objects, and objects of a kind without a status, are configuration (queues, flavors, topologies). The
run does not wait for them. Any other object has work to do in two cases:

* It has no status yet, or its status reports work in progress.
* Its status is unclear, and it owns other objects, as a JobSet owns Jobs. A controller that replaces these may update
  the status before it creates the new ones. Therefore this ends only after nothing has changed for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from batkube.cluster.jobs.custom_completion import CustomStage, stage_of
from batkube.cluster.kinds import Resource
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, after, seconds

#: Controllers act within milliseconds, and retry after some seconds.
_QUIET: Duration = seconds(60)

_ObjectId = tuple[str, Key]
"""The storage and the key of an object."""


@dataclass(slots=True)
class _Followed:
    """The progress of one object."""

    stage: CustomStage
    #: The last change of the object or of an object that it owns.
    changed: Instant
    owned: set[_ObjectId] = field(default_factory=set)


class CustomWork:
    """The custom objects that a run applies, and whether they have work to do."""

    def __init__(self, world: World) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._clock = world.clock
        self._places: set[_ObjectId] = set()
        self._by_uid: dict[str, _Followed] = {}
        #: By uid: objects with work to do, and objects with an unclear status.
        self._open: dict[str, _Followed] = {}
        self._unclear: dict[str, _Followed] = {}
        self._is_wake_booked = False

    @property
    def is_open(self) -> bool:
        """Whether any object has work to do."""
        last = self._clock.now - _QUIET
        return bool(self._open) or any(one.owned or one.changed > last for one in self._unclear.values())

    def follow(self, resource: Resource, key: Key) -> None:
        """Track an object that was just applied, unless it is configuration."""
        if not resource.namespaced or not _has_status(resource):
            return
        if not self._places:
            self._store.subscribe_all(self._on_changed)
        self._places.add((resource.storage, key))
        if (obj := self._store.get(resource.storage, key)) is not None:
            self._update(obj, self._clock.now)

    def _on_changed(self, batch: Batch, now: Instant) -> None:
        for key, obj in zip(batch.keys, batch.objects, strict=True):
            place = batch.kind, key
            for reference in obj["metadata"].get("ownerReferences", ()):
                if (owner := self._by_uid.get(reference["uid"])) is not None:
                    (owner.owned.discard if batch.type is DELETED else owner.owned.add)(place)
                    self._note_change(owner, now)
            if place not in self._places:
                continue
            if batch.type is DELETED:
                for objects in (self._by_uid, self._open, self._unclear):
                    objects.pop(obj["metadata"]["uid"], None)
            else:
                self._update(obj, now)

    def _update(self, obj: KubeObject, now: Instant) -> None:
        uid, stage = obj["metadata"]["uid"], stage_of(obj)
        one = self._by_uid.setdefault(uid, _Followed(stage, now))
        one.stage = stage
        for objects, its_stage in ((self._open, CustomStage.OPEN), (self._unclear, CustomStage.UNKNOWN)):
            objects.pop(uid, None)
            if stage is its_stage:
                objects[uid] = one
        self._note_change(one, now)

    def _note_change(self, one: _Followed, now: Instant) -> None:
        """Record a change, and book a check for completion after the quiet time."""
        one.changed = now
        if one.stage is CustomStage.UNKNOWN and not self._is_wake_booked:
            self._book_wake(now)

    def _book_wake(self, changed: Instant) -> None:
        self._is_wake_booked = True
        self._agenda.book(after(changed, _QUIET), Rank.WAKE, self._wake)

    def _wake(self, now: Instant) -> None:
        self._is_wake_booked = False
        later = [one.changed for one in self._unclear.values() if after(one.changed, _QUIET) > now]
        if later:
            self._book_wake(min(later))


def _has_status(resource: Resource) -> bool:
    """Return whether objects of a kind can have a status."""
    schema = resource.schema
    return "status" in resource.subresources or "status" in schema.fields or schema.keeps_unknown
