"""Create objects that differ only in their names, such as the pods of a job, at little more than the cost of one.

The result of defaults, admission, strategy and validation depends only on the object's spec, its namespace and a few
other objects. The first object of a kind is therefore processed in a dry run, and the result is cached and copied until
one of those other objects changes. Where the result may depend on the name (quotas, policies, webhooks), each object is
processed individually.
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

#: The kinds that admission of a pod depends on.
_ADMISSION_INPUTS = ("limitranges", "namespaces", "priorityclasses.scheduling.k8s.io", "runtimeclasses.node.k8s.io")
#: How many admitted objects are cached.
_MAX_CACHED = 1024

_encode = msgspec.json.encode


class BulkCreator:
    """Creates copies of templates."""

    def __init__(self, served: ServedKinds, registry: Registry, is_name_dependent: Callable[[str], bool]) -> None:
        """`is_name_dependent` returns whether admission in a namespace may depend on an object's name."""
        self._store = registry.store
        self._served_kinds = served
        self._registry = registry
        self._is_name_dependent = is_name_dependent
        #: Admitted objects by storage, namespace, field manager, spec, and the keys of labels and annotations.
        self._admitted: dict[tuple[object, ...], KubeObject] = {}
        for storage in _ADMISSION_INPUTS:
            self._store.subscribe(storage, self._clear_cache)

    def create(self, write: Write, template: KubeObject, keys: Sequence[Key], uids: Sequence[str]) -> None:
        """Create an object like `template` for each of `keys`, with these uids; raises Failure."""
        if self._is_name_dependent(write.namespace):
            for key, uid in zip(keys, uids, strict=True):
                single = msgspec.structs.replace(write, name=name_of(key), uid=uid)
                self._registry.create(single, self._with_defaults(single, template))
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
        """Return `template` after defaults, admission, strategy and validation."""
        metadata = template["metadata"]
        names = tuple(metadata.get("labels") or ()), tuple(metadata.get("annotations") or ())
        identity = write.stored.storage, write.namespace, write.options.field_manager, _encode(template["spec"]), names
        admitted = self._admitted.get(identity)
        if admitted is None:
            options = msgspec.structs.replace(write.options, dry_run=True)
            dry_run_write = msgspec.structs.replace(write, options=options)
            admitted = self._registry.create(dry_run_write, self._with_defaults(dry_run_write, template))
            if len(self._admitted) == _MAX_CACHED:
                self._admitted.clear()
        self._admitted[identity] = admitted = _with_creation_time(admitted, write.now)
        return admitted

    def _with_defaults(self, write: Write, template: KubeObject) -> KubeObject:
        """Return a copy of `template` in canonical form, with defaults."""
        behaviour = self._served_kinds.behaviour(write.resource)
        value, _ = behaviour.decode(write.resource, msgspec.json.decode(_encode(template)))
        value["metadata"]["name"] = write.name
        behaviour.default(write.resource, value)
        return value

    def _clear_cache(self, batch: Batch, now: Instant) -> None:
        self._admitted.clear()


def _with_creation_time(admitted: KubeObject, now: Instant) -> KubeObject:
    """Return an object with this creation time; the identical object if it has it, so that copies share memory."""
    metadata, created = admitted["metadata"], rfc3339(now)
    if metadata["creationTimestamp"] == created:
        return admitted
    owners = [{**entry, "time": created} for entry in metadata["managedFields"]]
    return {**admitted, "metadata": {**metadata, "creationTimestamp": created, "managedFields": owners}}
