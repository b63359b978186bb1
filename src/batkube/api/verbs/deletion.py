"""Deleting: preconditions, grace periods, finalizers and the propagation to dependents.

Follows apiserver/pkg/registry/rest/delete.go and generic/registry/store.go. What deletes the dependents of an object is
a controller (`controllers.garbage`), which acts on the finalizers set here.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from batkube.api.custom.catalogue import DEFINITIONS
from batkube.api.groups.strategies import default_propagation, deletion_grace_s
from batkube.api.requests import statuses
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import Deleting, key_of
from batkube.api.verbs.registry import with_version
from batkube.cluster.decisions import Decision, meaning
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import (
    Instant,
    after,
    bounded_seconds,
    instant_of,
    rfc3339,
)

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_PROPAGATION = (ORPHAN, FOREGROUND)

#: Kinds whose deletion answers with the object as it last was instead of a Status (ReturnDeletedObject).
_ANSWERED_WHOLE = frozenset(
    {
        "pods", "services", "namespaces", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims",
        "resourcequotas", "podtemplates",
        "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io",
        "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io",
    }
)  # fmt: skip


Review = Callable[[Resource, KubeObject, DeleteOptions, Deleting], None]
"""Lets admission refuse to have an object deleted."""


class Deletion(msgspec.Struct):
    """What a deletion came to: the object as it is or last was, and whether it is gone."""

    value: KubeObject
    gone: bool
    #: Whether the answer is the object rather than a Status.
    whole: bool


class Deleter:
    """Deletes objects from the store as the API promises."""

    def __init__(
        self, store: Store, review: Review, mark_definition: Callable[[Key, Instant], KubeObject] | None = None
    ) -> None:
        self._store = store
        self._review = review
        #: Marks a CustomResourceDefinition, which stays until its instances are gone.
        self.mark_definition = mark_definition

    def judge(self, resource: Resource, namespace: str, name: str, options: DeleteOptions, by: Deleting) -> None:
        """Let admission refuse a deletion, before anything is written on the way to it."""
        old = self._store.get(resource.storage, key_of(namespace, name))
        if old is not None:
            self._review(resource, old, options, by)

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions, by: Deleting) -> Deletion:
        """Delete one object, at once or by marking it."""
        key, now = key_of(namespace, name), by.now
        entry = self._store.entry(resource.storage, key)
        if entry is None:
            raise statuses.not_found(resource, name)
        old, version = entry
        self._review(resource, old, options, by)
        self.check(resource, name, old, version, options)
        if resource.storage == "namespaces":
            return self._delete_namespace(resource, key, old, version, options, now)
        if resource.storage == DEFINITIONS and self.mark_definition and "deletionTimestamp" not in old["metadata"]:
            marked = self.mark_definition(key, now)
            return Deletion(with_version(marked, self._store.version), gone=False, whole=True)
        if resource.storage == "pods":
            graceful = _mark_gracefully(resource, old, options, now)
            if graceful is _PENDING:
                return Deletion(with_version(old, version), gone=False, whole=True)
        else:
            graceful = None
        value = graceful if isinstance(graceful, dict) else old
        value = _with_propagation(resource, value, options)
        finalizers = value["metadata"].get("finalizers")
        if finalizers and graceful is None:
            value = mark_as_deleting(value, now)
        if value is not old and value != old:
            decision = meaning(resource.storage, key, old, value)
            version = self._replace(resource, key, value, version, options, now, decision)
        if finalizers or value["metadata"].get("deletionGracePeriodSeconds", 0) > 0:
            return Deletion(with_version(value, version), gone=False, whole=True)
        return self._remove(resource, key, value, version, options, now)

    @staticmethod
    def check(resource: Resource, name: str, old: KubeObject, version: int, options: DeleteOptions) -> None:
        """Refuse a deletion whose preconditions do not hold."""
        _check(resource, name, old, version, options)

    def _replace(
        self,
        resource: Resource,
        key: Key,
        value: KubeObject,
        version: int,
        options: DeleteOptions,
        now: Instant,
        decision: Decision | None = None,
    ) -> int:
        if options.dry_run:
            return version
        self._store.replace(resource.storage, [key], [value], now, decision=decision)
        return self._store.version

    def _remove(
        self, resource: Resource, key: Key, value: KubeObject, version: int, options: DeleteOptions, now: Instant
    ) -> Deletion:
        if not options.dry_run:
            self._store.delete(resource.storage, [key], now)
            version = self._store.version
        return Deletion(with_version(value, version), gone=True, whole=resource.storage in _ANSWERED_WHOLE)

    def _delete_namespace(
        self, resource: Resource, key: Key, old: KubeObject, version: int, options: DeleteOptions, now: Instant
    ) -> Deletion:
        """A namespace stays, Terminating, until its finalizers are gone (pkg/registry/core/namespace/storage).

        The first deletion only marks it, even if it has none: somebody may be filling it still.
        """
        value = _with_propagation(resource, old, options)
        is_first = "deletionTimestamp" not in value["metadata"]
        if is_first:
            value = mark_as_deleting(value, now, grace=False)
            value["status"] = {**value.get("status", {}), "phase": "Terminating"}
        if value != old:
            version = self._replace(resource, key, value, version, options, now)
        if is_first or value["spec"].get("finalizers") or value["metadata"].get("finalizers"):
            return Deletion(with_version(value, version), gone=False, whole=True)
        return self._remove(resource, key, value, version, options, now)


def _check(resource: Resource, name: str, old: KubeObject, version: int, options: DeleteOptions) -> None:
    """Refuse when a precondition does not hold; in these messages the kind stands for the resource."""
    uid = old["metadata"]["uid"]
    if resource.storage == "namespaces":
        if options.uid is not None and options.uid != uid:
            problem = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {uid}"
            raise statuses.conflict(resource, name, problem)
        if options.version is not None and options.version != str(version):
            problem = (
                f"Precondition failed: ResourceVersion in precondition: {options.version}, "
                f"ResourceVersion in object meta: {version}"
            )
            raise statuses.conflict(resource, name, problem)
        return
    if options.uid is not None and options.uid != uid:
        raise _conflict_by_kind(
            resource,
            name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated",
        )
    if options.version is not None and options.version != str(version):
        raise _conflict_by_kind(
            resource,
            name,
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({version}). The object might have been modified",
        )


def _conflict_by_kind(resource: Resource, name: str, problem: str) -> Failure:
    details = {"name": name, **({"group": resource.group} if resource.group else {}), "kind": resource.kind}
    message = f'Operation cannot be fulfilled on {resource.qualified_kind} "{name}": {problem}'
    return Failure(409, "Conflict", message, details)


_PENDING = object()


def _mark_gracefully(
    resource: Resource, old: KubeObject, options: DeleteOptions, now: Instant
) -> KubeObject | object | None:
    """Return the pod with a (shorter) time to end; `_PENDING` if it has one already; None if it goes at once."""
    meta = old["metadata"]
    grace = 1 if options.grace is not None and options.grace < 0 else options.grace
    if "deletionTimestamp" in meta:
        left = meta.get("deletionGracePeriodSeconds", 0)
        if not left:
            return None
        if grace is None or grace >= left:
            return _PENDING
        end = instant_of(meta["deletionTimestamp"]) + bounded_seconds(grace - left)
        period = grace
        if end < now:
            end, period = now, 1 if grace else 0
        return {**old, "metadata": _deleting(meta, Instant(end), period)}
    period = deletion_grace_s(resource, old, grace) or 0
    marked = _deleting(meta, after(now, bounded_seconds(period)), period)
    if meta.get("generation", 0) > 0:
        marked["generation"] = meta["generation"] + 1
    return {**old, "metadata": marked}


def _deleting(meta: KubeObject, end: Instant, period: int) -> KubeObject:
    return {**meta, "deletionTimestamp": rfc3339(end), "deletionGracePeriodSeconds": period}


def mark_as_deleting(value: KubeObject, now: Instant, grace: bool = True) -> KubeObject:
    """Return the object marked as being deleted now, for finalizers to act."""
    meta = dict(value["metadata"])
    if "deletionTimestamp" not in meta and meta.get("generation", 0) > 0:
        meta["generation"] += 1
    if "deletionTimestamp" not in meta or instant_of(meta["deletionTimestamp"]) > now:
        meta["deletionTimestamp"] = rfc3339(now)
    if grace:
        meta["deletionGracePeriodSeconds"] = 0
    return {**value, "metadata": meta}


def _with_propagation(resource: Resource, value: KubeObject, options: DeleteOptions) -> KubeObject:
    """Return the object with the finalizer that the propagation policy asks for, and without the others."""
    policy = default_propagation(resource)
    if policy == "Unsupported":
        return value
    before = value["metadata"].get("finalizers", [])
    orphan = ORPHAN in before or (policy == "Orphan" and FOREGROUND not in before)
    foreground = FOREGROUND in before and ORPHAN not in before
    if options.orphan is not None:
        orphan, foreground = options.orphan, False
    elif options.propagation is not None:
        orphan, foreground = options.propagation == "Orphan", options.propagation == "Foreground"
    after = [name for name in before if name not in _PROPAGATION]
    after += [ORPHAN] * orphan + [FOREGROUND] * foreground
    if sorted(before) == sorted(after):
        return value
    meta = {**value["metadata"], "finalizers": after}
    if not after:
        del meta["finalizers"]
    return {**value, "metadata": meta}


def status_of(resource: Resource, deletion: Deletion) -> KubeObject:
    """Return the Status that answers a deletion."""
    meta = deletion.value["metadata"]
    group = {"group": resource.group} if resource.group else {}
    details = {"name": meta["name"], **group, "kind": resource.plural, "uid": meta["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
