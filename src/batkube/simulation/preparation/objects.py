"""The objects of a run's workloads: check them before the run, and apply them at their times.

Objects are first applied, in the same order, to a separate API server without controllers. Objects that it rejects as
invalid are input errors, with file and place, before anything is written. Rejections that depend on the run (403, such
as an exceeded quota) are journalled and noted when they happen.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from batkube.cluster.client import ApiError
from batkube.cluster.kinds import DEFAULT_API, KindTable, ServedApi
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.streams import Streams
from batkube.simulation.preparation.custom_work import CustomWork
from batkube.workloads.model import ObjectManifest, Workload

if TYPE_CHECKING:
    from batkube.api.manifests import ManifestClient
    from batkube.programs.selection.prerequisites import Prerequisites

_REJECTED_BY_API = FidelityNote("workload", "the API rejected objects when they were applied")
_UNKNOWN_TO_PROGRAMS = FidelityNote("workload", "custom objects have no effect: the run has no controller for them")
#: Kinds that exist until they are deleted.
_ENDLESS_KINDS = ("CronJob", "DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
_FORBIDDEN = 403


def objects_of(workloads: Iterable[Workload]) -> list[ObjectManifest]:
    """Return the objects of all workloads in the order in which they are applied."""
    return list(heapq.merge(*(workload.objects for workload in workloads), key=lambda manifest: manifest.at))


def check_objects(
    objects: Sequence[ObjectManifest],
    until: Duration | None,
    others: Sequence[ObjectManifest] = (),
    prerequisites: Prerequisites = (),
    api: ServedApi = DEFAULT_API,
) -> None:
    """Raise InputError for objects that the API rejects, or that never end in a run without `until`.

    A run does not wait for the end of `others`. `prerequisites` exist before all objects, and `api` is served.
    """
    if not objects and not others and not prerequisites:
        return
    for manifest in objects:
        if manifest.kind == "Node":
            _reject(manifest, "is a Node; workloads cannot contain Nodes", "describe it in the --platform")
        if until is None and never_ends(manifest):
            _reject(manifest, "never ends, so the run would not end", "add --until, for example --until 1d")
    # Imported lazily: the import takes longer than a small run.
    from batkube.programs.selection.prerequisites import install
    from batkube.programs.startup.launch import make_server

    world = World(Streams(0))
    server = make_server(world, api=api)
    manifests = server.api.manifest_client(server.token)
    install(prerequisites, manifests)
    for manifest in heapq.merge(objects, others, key=lambda manifest: manifest.at):
        world.clock.advance(manifest.at)
        try:
            manifests.apply(manifest.fields)
        except ApiError as refusal:
            if refusal.code != _FORBIDDEN:
                remedy = _remedy(manifest, api.kubernetes) if refusal.message.startswith("no matches") else None
                # Join messages of several lines.
                _reject(manifest, f"is rejected by the API: {' '.join(refusal.message.split())}", remedy)


def _remedy(manifest: ObjectManifest, kubernetes: str) -> str:
    """Return the remedy for an unknown kind: enable its version, or define it."""
    version = manifest.fields.get("apiVersion")
    if version in KindTable.builtin(kubernetes).optional_versions:
        return f"add --api {version}"
    return "check apiVersion and kind; a custom resource needs its CustomResourceDefinition before it"


def _reject(manifest: ObjectManifest, problem: str, remedy: str | None) -> None:
    raise InputError(manifest.source, at=manifest.place, problem=problem, remedy=remedy)


def never_ends(manifest: ObjectManifest) -> bool:
    """Return whether an object keeps running until it is deleted."""
    kind, spec = manifest.kind, manifest.fields.get("spec")
    if kind == "Pod" and isinstance(spec, dict):
        return spec.get("restartPolicy", "Always") == "Always" and "activeDeadlineSeconds" not in spec
    return kind in _ENDLESS_KINDS or (kind == "Job" and isinstance(spec, dict) and spec.get("suspend") is True)


class ObjectSubmission:
    """Applies objects in order of time; ties in their given order."""

    def __init__(
        self,
        world: World,
        manifests: ManifestClient,
        objects: Sequence[ObjectManifest],
        on_apply: Callable[[], None] | None = None,
    ) -> None:
        """`on_apply` notifies external programs; None if there are none."""
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        self._manifests = manifests
        self._on_apply = on_apply
        self._objects = iter(objects)
        self._next = next(self._objects, None)
        self._custom = CustomWork(world)
        self._workloads: dict[tuple[str, Key], str] = {}
        #: The workload of the object that is being applied: subscribers need it before `apply` returns.
        self._workload_being_applied: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether all objects were applied or rejected."""
        return self._next is None

    @property
    def has_open_custom_objects(self) -> bool:
        """Whether a custom object exists that has work to do."""
        return self._custom.is_open

    def unapplied(self) -> list[str]:
        """Return the places of objects that were not applied."""
        waiting = [] if self._next is None else [self._next, *self._objects]
        return [f"{manifest.source}: {manifest.place}" for manifest in waiting]

    def workload_of(self, storage: str, key: Key) -> str | None:
        """Return the workload of an object."""
        return self._workloads.get((storage, key), self._workload_being_applied)

    def book_next(self) -> None:
        """Book the next application of objects."""
        if self._next is not None:
            self._agenda.book(self._next.at, Rank.SUBMIT, self._apply_due)

    def _apply_due(self, now: Instant) -> None:
        while self._next is not None and self._next.at == now:
            self._apply(self._next, now)
            self._next = next(self._objects, None)
        self.book_next()

    def _apply(self, manifest: ObjectManifest, now: Instant) -> None:
        self._workload_being_applied = manifest.workload
        try:
            resource, key = self._manifests.apply(manifest.fields)
        except ApiError as refusal:
            self._journal.append(now, "refuse", kind=manifest.kind, place=manifest.place, reason=refusal.message)
            self._notes.add(
                _REJECTED_BY_API, example=f"{Path(manifest.source).name}: {manifest.place}: {refusal.message}"
            )
            return
        finally:
            self._workload_being_applied = None
        self._workloads[resource.storage, key] = manifest.workload
        if resource.custom:
            self._custom.follow(resource, key)
        if self._on_apply is not None:
            self._on_apply()
        elif resource.custom:
            self._notes.add(_UNKNOWN_TO_PROGRAMS, example=f"{manifest.kind} {key}")
        self._journal.append(now, "apply", kind=manifest.kind, object=str(key))
