"""The API for components within the process: the `Client` of controllers, kubelets and schedulers.

Writes take the same path as HTTP requests (defaults, admission, strategies, validation, field ownership), without
serialization.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from batkube.api.admission.chain import AdmissionChain
from batkube.api.requests.options import DeleteOptions, WriteOptions
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.api.requests.webhooks.calls import WebhookCalls
from batkube.api.requests.webhooks.deferred_writes import DeferredWrites, DoWrite, ResultT, WriteTarget
from batkube.api.requests.webhooks.interrupted_writes import InterruptedWrites
from batkube.api.requests.writes import DeletionContext, Write, key_of
from batkube.api.verbs.handlers import subresources
from batkube.api.verbs.kinds.bulk_creation import BulkCreator
from batkube.api.verbs.kinds.bulk_writes import BulkWriter
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.storage.deletion import Deleter
from batkube.api.verbs.storage.registry import Registry
from batkube.cluster import decisions
from batkube.cluster.client import ApiError
from batkube.cluster.decisions import Binding, Decision
from batkube.cluster.kinds import Resource
from batkube.cluster.object_meta import key_of as object_key
from batkube.cluster.object_meta import name_of, namespace_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.suspension import SuspensionControl
from batkube.kernel.errors import Bug
from batkube.kernel.instants import Instant

_MASTERS = ("system:masters",)


def _deep_copy(value: KubeObject) -> KubeObject:
    """Return a deep copy, which the write path may edit."""
    copy: KubeObject = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def _identity(key: Key) -> KubeObject:
    """Return the metadata of the object at `key`, as far as it follows from the key."""
    return {"metadata": {"namespace": namespace_of(key), "name": name_of(key)}}


def _target(storage: str, obj: KubeObject, verb: str, subresource: str = "") -> WriteTarget:
    meta = obj["metadata"]
    key = key_of(meta.get("namespace", ""), meta.get("name") or meta.get("generateName", ""))
    return WriteTarget(storage, key, verb, subresource)


class WritePath:
    """The parts of the server that carry out the writes of all components."""

    def __init__(self, served: ServedKinds, registry: Registry, deleter: Deleter, admission: AdmissionChain) -> None:
        self.served_kinds = served
        self.registry = registry
        self.deleter = deleter
        self.bulk_creator = BulkCreator(served, registry, admission.is_name_dependent)
        self.bulk_writer = BulkWriter(registry, deleter, admission)


class WaitingWrites(NamedTuple):
    """The writes of all components that wait for webhooks."""

    suspension: SuspensionControl
    interrupted: InterruptedWrites
    deferred: DeferredWrites


class InProcessClient:
    """An API client for one component; the component's name becomes the manager of the fields it writes."""

    def __init__(
        self,
        component: str,
        path: WritePath,
        calls: WebhookCalls | None = None,
        waiting: WaitingWrites | None = None,
    ) -> None:
        """Create the client.

        * `calls`: None if the server calls no webhooks.
        * `waiting`: None if a write that needs a webhook blocks.
        """
        self._user = User(f"system:{component}", "", _MASTERS, is_master=True)
        self._options = WriteOptions(False, component, "Ignore", None)
        self._served_kinds = path.served_kinds
        self._registry = path.registry
        self._deleter = path.deleter
        self._bulk_creator = path.bulk_creator
        self._bulk_writer = path.bulk_writer
        self._webhook_calls = calls
        self._waiting = waiting
        #: A cache of built-in resources by storage name. Custom resources can be deleted, so they are not cached.
        self._built_in_resources: dict[str, Resource] = {}

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an object, or post it to a subresource of the object it names."""

        def write(now: Instant) -> KubeObject:
            write = self._new_write(storage, obj, now, subresource)
            if subresource == "binding":
                return subresources.bind(self._registry, write, obj)
            if subresource == "eviction":
                return subresources.evict(self._registry, self._deleter, write, obj)
            value = _deep_copy(obj)
            self._served_kinds.behaviour(write.resource).default(write.resource, value)
            self._registry.create(write, value)
            return self._live_object(storage, write.key)

        return self._run(_target(storage, obj, "create", subresource), obj, write, now, obj)

    def create_copies(
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Iterable[str], now: Instant
    ) -> None:
        """Create a copy of `template` for each of `keys`, which are all in one namespace, with these uids."""
        first = _identity(keys[0])
        identities = list(uids)

        def write(now: Instant) -> None:
            self._bulk_creator.create(self._new_write(storage, first, now, ""), template, keys, identities)

        self._run(_target(storage, first, "create"), first, write, now, None)

    def restore(self, storage: str, objects: Sequence[KubeObject], now: Instant) -> None:
        """Add objects that existed before the run began; admission does not see what is restored into etcd."""
        self._registry.store.create(storage, list(map(object_key, objects)), objects, now)

    def bind(self, binding: Binding, now: Instant) -> None:
        """Bind existing pods to nodes."""
        decisions.bind(self._registry.store, binding, now, in_full=True)

    def update_all(self, storage: str, objects: Sequence[KubeObject], now: Instant) -> None:
        """Replace existing objects, which are all in one namespace."""
        for first, part in self._separate_writes(list(map(object_key, objects))):

            def write(now: Instant, first: KubeObject = first, part: slice = part) -> None:
                self._bulk_writer.update(self._new_write(storage, first, now, ""), objects[part])

            self._run(_target(storage, first, "update"), first, write, now, None)

    def set_statuses(
        self,
        storage: str,
        keys: Sequence[Key],
        statuses: KubeObject | Sequence[KubeObject],
        now: Instant,
        decision: Decision | None = None,
    ) -> None:
        """Replace the statuses of existing objects, which are all in one namespace."""
        for first, part in self._separate_writes(keys):

            def write(now: Instant, first: KubeObject = first, part: slice = part) -> None:
                some = statuses if isinstance(statuses, dict) else statuses[part]
                single = self._new_write(storage, first, now, "status")
                self._bulk_writer.set_statuses(single, keys[part], some, decision)

            self._run(_target(storage, first, "update", "status"), first, write, now, None)

    def delete_all(
        self, storage: str, keys: Sequence[Key], now: Instant, *, grace_s: int = 0, decision: Decision | None = None
    ) -> None:
        """Delete existing objects, which are all in one namespace."""
        for first, part in self._separate_writes(keys):

            def write(now: Instant, first: KubeObject = first, part: slice = part) -> None:
                self._bulk_writer.delete(self._new_write(storage, first, now, ""), keys[part], grace_s, decision)

            self._run(_target(storage, first, "delete"), first, write, now, None)

    def _separate_writes(self, keys: Sequence[Key]) -> Iterator[tuple[KubeObject, slice]]:
        """Yield the parts of `keys` to write separately, each with its first object.

        It is one part, unless each object may have to wait for a webhook.
        """
        if not keys:
            return
        may_wait = self._waiting is not None and self._bulk_writer.admission.is_name_dependent(namespace_of(keys[0]))
        size = 1 if may_wait else len(keys)
        for start in range(0, len(keys), size):
            yield _identity(keys[start]), slice(start, start + size)

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Replace the stored object by `obj`, whatever its resourceVersion."""
        uid = obj["metadata"].get("uid", "")

        def write(now: Instant) -> KubeObject:
            value = _deep_copy(obj)
            write = self._new_write(storage, obj, now, subresource)
            # No other write can intervene, so the current version is the one that was read. Some kinds require it.
            value["metadata"]["resourceVersion"] = str(self._registry.store.version_of(storage, write.key) or "")
            self._registry.update(write, lambda _: value, upsert=False, uid=uid)
            return self._registry.store.get(storage, write.key) or value

        return self._run(_target(storage, obj, "update", subresource), obj, write, now, obj)

    def delete(
        self,
        storage: str,
        key: Key,
        now: Instant,
        *,
        propagation: str | None = None,
        grace_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete the object at `key`. If `uid` is given, delete it only if its uid matches."""
        options = DeleteOptions(grace_s, uid, None, propagation)

        def write(now: Instant) -> None:
            resource, by = self._resource_stored_as(storage), DeletionContext(now, self._user)
            self._deleter.delete(resource, namespace_of(key), name_of(key), options, by)

        obj = _identity(key)
        self._run(_target(storage, obj, "delete"), obj, write, now, None)

    def _run(
        self, target: WriteTarget, content: KubeObject, write: DoWrite[ResultT], now: Instant, fallback: ResultT
    ) -> ResultT:
        """Carry out a write on the component's behalf; raise its `Failure` as an `ApiError`.

        A write that needs a webhook suspends the component, or else is queued, and the result is `fallback`.
        """
        try:
            if self._webhook_calls is None:
                return write(now)
            if self._waiting is None:
                with self._webhook_calls.component_request():
                    return write(now)
            if self._waiting.suspension.is_allowed:
                return self._waiting.interrupted.run(self._user.name, target, content, write, now)
            return self._waiting.deferred.run(target, write, now, fallback)
        except Failure as failure:
            raise ApiError(failure.code, failure.reason, failure.message) from failure

    def _new_write(self, storage: str, obj: KubeObject, now: Instant, subresource: str) -> Write:
        resource, meta = self._resource_stored_as(storage), obj["metadata"]
        return Write(
            resource,
            resource,
            meta.get("namespace", "") if resource.namespaced else "",
            meta.get("name", ""),
            subresource,
            self._options,
            self._user,
            now,
        )

    def _resource_stored_as(self, storage: str) -> Resource:
        cached = self._built_in_resources.get(storage)
        if cached is not None:
            return cached
        resource = self._served_kinds.stored_as(storage)
        if resource is None:
            # The CustomResourceDefinition was deleted, and its objects with it.
            raise Failure(404, "NotFound", f"no resource is stored as {storage}")
        if not resource.custom:
            self._built_in_resources[storage] = resource
        return resource

    def _live_object(self, storage: str, key: Key) -> KubeObject:
        value = self._registry.store.get(storage, key)
        if value is None:
            raise Bug(f"the object that was just created in {storage} does not exist: {key}")
        return value
