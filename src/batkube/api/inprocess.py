"""The API for components within the process: the `Client` of controllers, kubelets and schedulers.

Their writes go the way of everybody's, without the bytes: defaults, admission, strategies, validation, ownership.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence

import msgspec

from batkube.api.requests.broken_off import BrokenOff
from batkube.api.requests.options import DeleteOptions, WriteOptions
from batkube.api.requests.outside import Inquiries, Outside
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.api.requests.writes import Deleting, Write
from batkube.api.verbs import subresources
from batkube.api.verbs.copies import Copies
from batkube.api.verbs.deletion import Deleter
from batkube.api.verbs.registry import Registry
from batkube.api.verbs.served import Served
from batkube.cluster.client import Refused
from batkube.cluster.kinds import Resource
from batkube.cluster.references import name_of, namespace_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.waiting import Breaks
from batkube.kernel.errors import Bug
from batkube.kernel.instants import Instant

_MASTERS = ("system:masters",)


def _copied(value: KubeObject) -> KubeObject:
    """Return a deep copy, which the pipeline may edit."""
    copy: KubeObject = msgspec.json.decode(msgspec.json.encode(value))
    return copy


class InProcessClient:
    """The API server for one component, whose name becomes the manager of the fields it writes."""

    def __init__(
        self,
        component: str,
        served: Served,
        registry: Registry,
        deleter: Deleter,
        copies: Copies,
        inquiries: Inquiries | None = None,
        breaking: tuple[Breaks, BrokenOff] | None = None,
    ) -> None:
        """`inquiries` is None where nobody outside is asked, `breaking` where nobody is broken off for it."""
        self._user = User(f"system:{component}", "", _MASTERS, is_master=True)
        self._options = WriteOptions(False, component, "Ignore", None)
        self._served = served
        self._registry = registry
        self._deleter = deleter
        self._copies = copies
        self._inquiries = inquiries
        self._breaking = breaking
        #: Kinds by their name in the store, as far as they were needed; custom ones come and go.
        self._built_in: dict[str, Resource] = {}

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an object, or post it to a sub-resource of the object it names."""
        with self._acting("create", storage, obj, subresource):
            write = self._write(storage, obj, now, subresource)
            if subresource == "binding":
                return subresources.bind(self._registry, write, obj)
            if subresource == "eviction":
                return subresources.evict(self._registry, self._deleter, write, obj)
            value = _copied(obj)
            self._served.behaviour(write.resource).default(write.resource, value)
            self._registry.create(write, value)
        return self._live(storage, write.key)

    def create_copies(
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Sequence[str], now: Instant
    ) -> None:
        """Create an object like `template` for each of `keys`, all of one namespace, with these uids."""
        first = {"metadata": {"namespace": namespace_of(keys[0]), "name": name_of(keys[0])}}
        with self._acting("create", storage, first):
            self._copies.create(self._write(storage, first, now, ""), template, keys, uids)

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Put `obj` in the place of what is there, whatever its version."""
        value = _copied(obj)
        with self._acting("update", storage, obj, subresource):
            write = self._write(storage, obj, now, subresource)
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
        with self._acting("delete", storage, {"metadata": {"name": key}}):
            self._deleter.delete(self._resource(storage), namespace, name, options, Deleting(now, self._user))

    @contextlib.contextmanager
    def _acting(self, verb: str, storage: str, obj: KubeObject, subresource: str = "") -> Iterator[None]:
        """Write on the component's own account; a failure is told as a refusal."""
        try:
            if self._inquiries is None:
                yield
            elif self._breaking is None or not self._breaking[0].are_allowed:
                with self._inquiries.aside():
                    yield
            else:
                meta = obj["metadata"]
                name = meta.get("name") or meta.get("generateName", "")
                place = self._user.name, verb, storage, subresource, meta.get("namespace", ""), name
                with self._interrupted(self._inquiries, self._breaking[1], place, msgspec.json.encode(obj)):
                    yield
        except Failure as failure:
            raise Refused(failure.code, failure.reason, failure.message) from failure

    @staticmethod
    @contextlib.contextmanager
    def _interrupted(inquiries: Inquiries, broken_off: BrokenOff, place: Hashable, content: bytes) -> Iterator[None]:
        """Break off a write for which somebody outside has to be asked; it finds the answer when it is made again."""
        answers = broken_off.answers(place, content)
        try:
            with inquiries.aside(answers):
                yield
        except Outside as outside:
            raise broken_off.ask(place, outside.works) from None
        except Failure:
            broken_off.done(place)
            raise
        broken_off.done(place)

    def _write(self, storage: str, obj: KubeObject, now: Instant, subresource: str) -> Write:
        resource, meta = self._resource(storage), obj["metadata"]
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

    def _resource(self, storage: str) -> Resource:
        known = self._built_in.get(storage)
        if known is not None:
            return known
        resource = self._served.stored_as(storage)
        if resource is None:
            # A custom kind whose definition is gone; what there was of it goes with it.
            raise Refused(404, "NotFound", f"nothing is stored as {storage}")
        if not resource.custom:
            self._built_in[storage] = resource
        return resource

    def _live(self, storage: str, key: Key) -> KubeObject:
        value = self._registry.store.get(storage, key)
        if value is None:
            raise Bug(f"a new object of {storage} is gone: {key}")
        return value
