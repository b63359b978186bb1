"""The API for components within the process: the `Client` of controllers, kubelets and schedulers.

Their writes go the way of everybody's, without the bytes: defaults, admission, strategies, validation, ownership.
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
    """Return a deep copy, which the pipeline may edit."""
    copy: KubeObject = msgspec.json.decode(msgspec.json.encode(value))
    return copy


class InProcessClient:
    """The API server for one component, whose name becomes the manager of the fields it writes."""

    def __init__(
        self,
        component: str,
        served: ServedKinds,
        registry: Registry,
        deleter: Deleter,
        copies: BulkCreator,
        inquiries: WebhookCalls | None = None,
        breaking: tuple[SuspensionControl, InterruptedWrites] | None = None,
    ) -> None:
        """`inquiries` is None where nobody outside is asked, `breaking` where nobody is broken off for it."""
        self._user = User(f"system:{component}", "", _MASTERS, is_master=True)
        self._options = WriteOptions(False, component, "Ignore", None)
        self._served_kinds = served
        self._registry = registry
        self._deleter = deleter
        self._bulk_creator = copies
        self._webhook_calls = inquiries
        self._interruption = breaking
        #: Kinds by their name in the store, as far as they were needed; custom ones come and go.
        self._built_in_resources: dict[str, Resource] = {}

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an object, or post it to a sub-resource of the object it names."""
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
        """Create an object like `template` for each of `keys`, all of one namespace, with these uids."""
        first = {"metadata": {"namespace": namespace_of(keys[0]), "name": name_of(keys[0])}}
        with self._component_request("create", storage, first):
            self._bulk_creator.create(self._new_write(storage, first, now, ""), template, keys, uids)

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Put `obj` in the place of what is there, whatever its version."""
        value = _deep_copy(obj)
        with self._component_request("update", storage, obj, subresource):
            write = self._new_write(storage, obj, now, subresource)
            # Nobody else acts meanwhile, so the present version is the one that was read; some kinds insist on one.
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
        """Delete the object at `key`; only if it is the one with this `uid`, when one is given."""
        namespace, _, name = key.rpartition("/")
        options = DeleteOptions(grace_s, uid, None, propagation)
        with self._component_request("delete", storage, {"metadata": {"name": key}}):
            self._deleter.delete(
                self._resource_stored_as(storage), namespace, name, options, DeletionContext(now, self._user)
            )

    @contextlib.contextmanager
    def _component_request(self, verb: str, storage: str, obj: KubeObject, subresource: str = "") -> Iterator[None]:
        """Write on the component's own account; a failure is told as a refusal."""
        try:
            if self._webhook_calls is None:
                yield
            elif self._interruption is None or not self._interruption[0].is_allowed:
                with self._webhook_calls.outside_request():
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
        inquiries: WebhookCalls, broken_off: InterruptedWrites, place: Hashable, content: bytes
    ) -> Iterator[None]:
        """Break off a write for which somebody outside has to be asked; it finds the answer when it is made again."""
        answers = broken_off.responses_for(place, content)
        try:
            with inquiries.outside_request(answers):
                yield
        except PendingWebhookCalls as outside:
            raise broken_off.start_calls(place, outside.calls) from None
        except Failure:
            broken_off.forget(place)
            raise
        broken_off.forget(place)

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
        known = self._built_in_resources.get(storage)
        if known is not None:
            return known
        resource = self._served_kinds.stored_as(storage)
        if resource is None:
            # A custom kind whose definition is gone; what there was of it goes with it.
            raise ApiError(404, "NotFound", f"nothing is stored as {storage}")
        if not resource.custom:
            self._built_in_resources[storage] = resource
        return resource

    def _live_object(self, storage: str, key: Key) -> KubeObject:
        value = self._registry.store.get(storage, key)
        if value is None:
            raise Bug(f"a new object of {storage} is gone: {key}")
        return value
