"""Creates objects that differ in their names alone, such as the pods of a job, at little more than the cost of one.

Defaults, admission, strategies and validation make of an object what its spec, its namespace and a few other objects
say. So the first of its like goes the whole way in a dry run, and its copies are stored, until one of those objects
changes. Where admission judges objects one by one (quotas, policies, webhooks), each goes the whole way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from batkube.api.requests import statuses
from batkube.api.requests.writes import Write
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.storage.registry import Registry
from batkube.cluster.object_meta import is_being_deleted, name_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.kernel.instants import Instant, rfc3339

#: What admission looks up when it judges a pod.
_ADMISSION_INPUTS = ("limitranges", "namespaces", "priorityclasses.scheduling.k8s.io", "runtimeclasses.node.k8s.io")
#: How many admitted objects are kept.
_MAX_CACHED = 1024

_encode = msgspec.json.encode


class BulkCreator:
    """Creates copies of templates."""

    def __init__(self, served: ServedKinds, registry: Registry, judges_each: Callable[[str], bool]) -> None:
        """`judges_each` says whether admission judges the objects of a namespace one by one."""
        self._store = registry.store
        self._served_kinds = served
        self._registry = registry
        self._is_name_dependent = judges_each
        #: What became of objects, by their namespace, manager and spec, and the names of their labels and annotations.
        self._admitted: dict[tuple[object, ...], KubeObject] = {}
        for storage in _ADMISSION_INPUTS:
            self._store.subscribe(storage, self._clear_cache)

    def create(self, write: Write, template: KubeObject, keys: Sequence[Key], uids: Sequence[str]) -> None:
        """Create an object like `template` for each of `keys`, with these uids; raises Failure."""
        if self._is_name_dependent(write.namespace):
            for key, uid in zip(keys, uids, strict=True):
                one = msgspec.structs.replace(write, name=name_of(key), uid=uid)
                self._registry.create(one, self._with_defaults(one, template))
            return
        storage = write.stored.storage
        if taken := self._store.existing(storage, keys):
            going = is_being_deleted(self._store.objects(storage, taken[:1])[0])
            raise statuses.already_exists(write.resource, name_of(taken[0]), going=going)
        admitted = self._admitted_object(msgspec.structs.replace(write, uid=uids[0]), template)
        shared = {**admitted["metadata"], **template["metadata"]}
        copies: list[KubeObject] = [
            {**admitted, "metadata": {**shared, "name": name_of(key), "uid": uid}}
            for key, uid in zip(keys, uids, strict=True)
        ]
        self._store.create(storage, keys, copies, write.now)

    def _admitted_object(self, write: Write, template: KubeObject) -> KubeObject:
        """Return what the server makes of an object like `template`."""
        metadata = template["metadata"]
        names = tuple(metadata.get("labels") or ()), tuple(metadata.get("annotations") or ())
        identity = write.stored.storage, write.namespace, write.options.field_manager, _encode(template["spec"]), names
        admitted = self._admitted.get(identity)
        if admitted is None:
            options = msgspec.structs.replace(write.options, dry_run=True)
            trial = msgspec.structs.replace(write, options=options)
            admitted = self._registry.create(trial, self._with_defaults(trial, template))
            if len(self._admitted) == _MAX_CACHED:
                self._admitted.clear()
        self._admitted[identity] = admitted = _with_creation_time(admitted, write.now)
        return admitted

    def _with_defaults(self, write: Write, template: KubeObject) -> KubeObject:
        """Return a new object like `template` in canonical form, with its defaults."""
        behaviour = self._served_kinds.behaviour(write.resource)
        value, _ = behaviour.decode(write.resource, msgspec.json.decode(_encode(template)))
        value["metadata"]["name"] = write.name
        behaviour.default(write.resource, value)
        return value

    def _clear_cache(self, batch: Batch, now: Instant) -> None:
        self._admitted.clear()


def _with_creation_time(admitted: KubeObject, now: Instant) -> KubeObject:
    """Return an object as created at this instant; the same one if it was, since copies share what it holds."""
    metadata, created = admitted["metadata"], rfc3339(now)
    if metadata["creationTimestamp"] == created:
        return admitted
    owners = [{**entry, "time": created} for entry in metadata["managedFields"]]
    return {**admitted, "metadata": {**metadata, "creationTimestamp": created, "managedFields": owners}}
