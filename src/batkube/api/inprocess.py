"""The API for components within the process: the `Client` of controllers, kubelets and schedulers.

Writes take the same path as HTTP requests (defaults, admission, strategies, validation, field ownership), without
serialization.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence

import msgspec

from batkube.api.requests.options import DeleteOptions, WriteOptions
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.api.requests.webhooks.calls import PendingWebhookCalls, WebhookCalls
from batkube.api.requests.webhooks.interrupted_writes import InterruptedWrites
from batkube.api.requests.writes import DeletionContext, Write
from batkube.api.verbs.handlers import subresources
from batkube.api.verbs.kinds.bulk_creation import BulkCreator
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.storage.deletion import Deleter
from batkube.api.verbs.storage.registry import Registry
from batkube.cluster.client import ApiError
from batkube.cluster.kinds import Resource
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


class InProcessClient:
    """An API client for one component; the component's name becomes the manager of the fields it writes."""

    def __init__(
        self,
        component: str,
        served: ServedKinds,
        registry: Registry,
        deleter: Deleter,
        bulk_creator: BulkCreator,
        calls: WebhookCalls | None = None,
        interruption: tuple[SuspensionControl, InterruptedWrites] | None = None,
    ) -> None:
        """Create the client.

        * `calls`: None if the server calls no webhooks.
        * `interruption`: None if a write that needs a webhook blocks instead of being suspended.
        """
        self._user = User(f"system:{component}", "", _MASTERS, is_master=True)
        self._options = WriteOptions(False, component, "Ignore", None)
        self._served_kinds = served
        self._registry = registry
        self._deleter = deleter
        self._bulk_creator = bulk_creator
        self._webhook_calls = calls
        self._interruption = interruption
        #: Built-in resources by storage name, filled on use. Custom resources are not cached, since they can be
        #: deleted.
        self._built_in_resources: dict[str, Resource] = {}

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an object, or post it to a subresource of the object it names."""
        with self._component_request("create", storage, obj, subresource):
            write = self._new_write(storage, obj, now, subresource)
            if subresource == "binding":
                return subresources.bind(self._registry, write, obj)
            if subresource == "eviction":
                return subresources.evict(self._registry, self._deleter, write, obj)
            value = _deep_copy(obj)
            self._served_kinds.behaviour(write.resource).default(write.resource, value)
            self._registry.create(write, value)
        return self._live_object(storage, write.key)

    def create_copies(
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Sequence[str], now: Instant
    ) -> None:
        """Create a copy of `template` for each of `keys`, which are all in one namespace, with these uids."""
        first = {"metadata": {"namespace": namespace_of(keys[0]), "name": name_of(keys[0])}}
        with self._component_request("create", storage, first):
            self._bulk_creator.create(self._new_write(storage, first, now, ""), template, keys, uids)

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Replace the stored object by `obj`, whatever its resourceVersion."""
        value = _deep_copy(obj)
        with self._component_request("update", storage, obj, subresource):
            write = self._new_write(storage, obj, now, subresource)
            # Requests are handled one at a time, so the current version is the one that was read. Some kinds require
            # one.
            value["metadata"]["resourceVersion"] = str(self._registry.store.version_of(storage, write.key) or "")
            self._registry.update(write, lambda _: value, upsert=False)
        return self._registry.store.get(storage, write.key) or value

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
        namespace, _, name = key.rpartition("/")
        options = DeleteOptions(grace_s, uid, None, propagation)
        with self._component_request("delete", storage, {"metadata": {"name": key}}):
            self._deleter.delete(
                self._resource_stored_as(storage), namespace, name, options, DeletionContext(now, self._user)
            )

    @contextlib.contextmanager
    def _component_request(self, verb: str, storage: str, obj: KubeObject, subresource: str = "") -> Iterator[None]:
        """Run a write on the component's behalf; raise its `Failure` as an `ApiError`."""
        try:
            if self._webhook_calls is None:
                yield
            elif self._interruption is None or not self._interruption[0].is_allowed:
                with self._webhook_calls.component_request():
                    yield
            else:
                meta = obj["metadata"]
                name = meta.get("name") or meta.get("generateName", "")
                place = self._user.name, verb, storage, subresource, meta.get("namespace", ""), name
                with self._interruptible(self._webhook_calls, self._interruption[1], place, msgspec.json.encode(obj)):
                    yield
        except Failure as failure:
            raise ApiError(failure.code, failure.reason, failure.message) from failure

    @staticmethod
    @contextlib.contextmanager
    def _interruptible(
        calls: WebhookCalls, interrupted: InterruptedWrites, place: Hashable, content: bytes
    ) -> Iterator[None]:
        """Suspend the write if a webhook has to be called; the retried write finds the webhook's response."""
        responses = interrupted.responses_for(place, content)
        try:
            with calls.component_request(responses):
                yield
        except PendingWebhookCalls as pending:
            raise interrupted.start_calls(place, pending.calls) from None
        except Failure:
            interrupted.forget(place)
            raise
        interrupted.forget(place)

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
            raise ApiError(404, "NotFound", f"no resource is stored as {storage}")
        if not resource.custom:
            self._built_in_resources[storage] = resource
        return resource

    def _live_object(self, storage: str, key: Key) -> KubeObject:
        value = self._registry.store.get(storage, key)
        if value is None:
            raise Bug(f"the object that was just created in {storage} does not exist: {key}")
        return value
