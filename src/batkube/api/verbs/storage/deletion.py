"""Deletion: preconditions, grace periods, finalizers and propagation policies.

Follows apiserver/pkg/registry/rest/delete.go and apiserver/pkg/registry/generic/registry/store.go. The garbage
collector deletes the dependents of an object, according to the finalizers set here.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from batkube.api.custom.serving.custom_kinds import CUSTOM_RESOURCE_DEFINITIONS
from batkube.api.groups.scheme.strategies import default_propagation, deletion_grace_s
from batkube.api.requests import statuses
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import DeletionContext, key_of
from batkube.api.verbs.storage.registry import with_resource_version
from batkube.cluster.decisions import Decision, decision_of
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import (
    Instant,
    after,
    bounded_seconds,
    instant_of,
    rfc3339,
)

ORPHAN_FINALIZER, FOREGROUND_FINALIZER = "orphan", "foregroundDeletion"
_PROPAGATION_FINALIZERS = (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)

#: Kinds whose deletion returns the deleted object instead of a Status (Kubernetes: ReturnDeletedObject).
_RETURNS_DELETED_OBJECT = frozenset(
    {
        "pods", "services", "namespaces", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims",
        "resourcequotas", "podtemplates",
        "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io",
        "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io",
    }
)  # fmt: skip


ValidateDeletion = Callable[[Resource, KubeObject, DeleteOptions, DeletionContext], None]
"""Runs admission on the deletion of an object; raises Failure."""


class DeletionResult(msgspec.Struct):
    """The result of a deletion: the last state of the object, and whether it was removed from the store."""

    value: KubeObject
    is_gone: bool
    #: Whether the response is the object instead of a Status.
    returns_object: bool


class Deleter:
    """Deletes objects with the semantics of the API."""

    def __init__(
        self,
        store: Store,
        validate_deletion: ValidateDeletion,
        mark_definition: Callable[[Key, Instant], KubeObject] | None = None,
    ) -> None:
        self._store = store
        self._validate_deletion = validate_deletion
        #: Marks a CustomResourceDefinition for deletion; it is removed when its instances are gone.
        self.mark_definition_for_deletion = mark_definition

    def validate(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions, by: DeletionContext
    ) -> None:
        """Run admission on a deletion in advance, before the caller writes anything else; raises Failure."""
        old = self._store.get(resource.storage, key_of(namespace, name))
        if old is not None:
            self._validate_deletion(resource, old, options, by)

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions, by: DeletionContext
    ) -> DeletionResult:
        """Delete one object: remove it, or mark it for deletion."""
        key, now = key_of(namespace, name), by.now
        entry = self._store.entry(resource.storage, key)
        if entry is None:
            raise statuses.not_found(resource, name)
        old, version = entry
        if by.user is not None:
            self._validate_deletion(resource, old, options, by)
        self.check_preconditions(resource, name, old, version, options)
        if resource.storage == "namespaces":
            return self._delete_namespace(resource, key, old, version, options, now)
        if (
            resource.storage == CUSTOM_RESOURCE_DEFINITIONS
            and self.mark_definition_for_deletion
            and "deletionTimestamp" not in old["metadata"]
        ):
            marked = self.mark_definition_for_deletion(key, now)
            return DeletionResult(
                with_resource_version(marked, self._store.version), is_gone=False, returns_object=True
            )
        if resource.storage == "pods":
            graceful = _mark_for_graceful_deletion(resource, old, options, now)
            if graceful is _ALREADY_TERMINATING:
                return DeletionResult(with_resource_version(old, version), is_gone=False, returns_object=True)
        else:
            graceful = None
        value = graceful if isinstance(graceful, dict) else old
        value = _with_propagation(resource, value, options)
        finalizers = value["metadata"].get("finalizers")
        if finalizers and graceful is None:
            value = mark_as_deleting(value, now)
        if value is not old and value != old:
            decision = decision_of(resource.storage, key, old, value) if by.is_decision else None
            version = self._replace(resource, key, value, version, options, now, decision)
        if finalizers or value["metadata"].get("deletionGracePeriodSeconds", 0) > 0:
            return DeletionResult(with_resource_version(value, version), is_gone=False, returns_object=True)
        return self._remove(resource, key, value, version, options, now)

    @staticmethod
    def check_preconditions(
        resource: Resource, name: str, old: KubeObject, version: int, options: DeleteOptions
    ) -> None:
        """Raise a 409 if a precondition does not hold."""
        _check_preconditions(resource, name, old, version, options)

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
    ) -> DeletionResult:
        if not options.dry_run:
            self._store.delete(resource.storage, [key], now)
            version = self._store.version
        return DeletionResult(
            with_resource_version(value, version),
            is_gone=True,
            returns_object=resource.storage in _RETURNS_DELETED_OBJECT,
        )

    def _delete_namespace(
        self, resource: Resource, key: Key, old: KubeObject, version: int, options: DeleteOptions, now: Instant
    ) -> DeletionResult:
        """Mark a namespace as Terminating; remove it if it is already marked and has no finalizers left.

        Kubernetes: pkg/registry/core/namespace/storage/storage.go, Delete.
        """
        value = _with_propagation(resource, old, options)
        is_first = "deletionTimestamp" not in value["metadata"]
        if is_first:
            value = mark_as_deleting(value, now, grace=False)
            value["status"] = {**value.get("status", {}), "phase": "Terminating"}
        if value != old:
            version = self._replace(resource, key, value, version, options, now)
        if is_first or value["spec"].get("finalizers") or value["metadata"].get("finalizers"):
            return DeletionResult(with_resource_version(value, version), is_gone=False, returns_object=True)
        return self._remove(resource, key, value, version, options, now)


def _check_preconditions(resource: Resource, name: str, old: KubeObject, version: int, options: DeleteOptions) -> None:
    """Raise a 409 if a precondition does not hold. These messages name the kind instead of the resource."""
    uid = old["metadata"]["uid"]
    if resource.storage == "namespaces":
        if options.uid is not None and options.uid != uid:
            problem = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {uid}"
            raise statuses.conflict(resource, name, problem)
        if options.resource_version is not None and options.resource_version != str(version):
            problem = (
                f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
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
    if options.resource_version is not None and options.resource_version != str(version):
        raise _conflict_by_kind(
            resource,
            name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified",
        )


def _conflict_by_kind(resource: Resource, name: str, problem: str) -> Failure:
    details = {"name": name, **({"group": resource.group} if resource.group else {}), "kind": resource.kind}
    message = f'Operation cannot be fulfilled on {resource.qualified_kind} "{name}": {problem}'
    return Failure(409, "Conflict", message, details)


_ALREADY_TERMINATING = object()


def _mark_for_graceful_deletion(
    resource: Resource, old: KubeObject, options: DeleteOptions, now: Instant
) -> KubeObject | object | None:
    """Return the pod marked with a grace period, or with a shorter one than before.

    `_ALREADY_TERMINATING` if it has one that is not longer; None if it is to be removed at once.
    Kubernetes: apiserver/pkg/registry/rest/delete.go, BeforeDelete.
    """
    meta = old["metadata"]
    grace = 1 if options.grace_period_s is not None and options.grace_period_s < 0 else options.grace_period_s
    if "deletionTimestamp" in meta:
        remaining = meta.get("deletionGracePeriodSeconds", 0)
        if not remaining:
            return None
        if grace is None or grace >= remaining:
            return _ALREADY_TERMINATING
        end = instant_of(meta["deletionTimestamp"]) + bounded_seconds(grace - remaining)
        period = grace
        if end < now:
            end, period = now, 1 if grace else 0
        return {**old, "metadata": _with_deletion_time(meta, Instant(end), period)}
    period = deletion_grace_s(resource, old, grace) or 0
    marked = _with_deletion_time(meta, after(now, bounded_seconds(period)), period)
    if meta.get("generation", 0) > 0:
        marked["generation"] = meta["generation"] + 1
    return {**old, "metadata": marked}


def _with_deletion_time(meta: KubeObject, end: Instant, period: int) -> KubeObject:
    return {**meta, "deletionTimestamp": rfc3339(end), "deletionGracePeriodSeconds": period}


def mark_as_deleting(value: KubeObject, now: Instant, grace: bool = True) -> KubeObject:
    """Return the object with its deletionTimestamp set to now, so that controllers process its finalizers."""
    # Kubernetes: apiserver/pkg/registry/generic/registry/store.go, markAsDeleting.
    meta = dict(value["metadata"])
    if "deletionTimestamp" not in meta and meta.get("generation", 0) > 0:
        meta["generation"] += 1
    if "deletionTimestamp" not in meta or instant_of(meta["deletionTimestamp"]) > now:
        meta["deletionTimestamp"] = rfc3339(now)
    if grace:
        meta["deletionGracePeriodSeconds"] = 0
    return {**value, "metadata": meta}


def _with_propagation(resource: Resource, value: KubeObject, options: DeleteOptions) -> KubeObject:
    """Return the object with the finalizer of the propagation policy, and without the other one."""
    # Kubernetes: apiserver/pkg/registry/generic/registry/store.go, deletionFinalizersForGarbageCollection.
    policy = default_propagation(resource)
    if policy == "Unsupported":
        return value
    before = value["metadata"].get("finalizers", [])
    orphan = ORPHAN_FINALIZER in before or (policy == "Orphan" and FOREGROUND_FINALIZER not in before)
    foreground = FOREGROUND_FINALIZER in before and ORPHAN_FINALIZER not in before
    if options.orphan is not None:
        orphan, foreground = options.orphan, False
    elif options.propagation is not None:
        orphan, foreground = options.propagation == "Orphan", options.propagation == "Foreground"
    after = [name for name in before if name not in _PROPAGATION_FINALIZERS]
    after += [ORPHAN_FINALIZER] * orphan + [FOREGROUND_FINALIZER] * foreground
    if sorted(before) == sorted(after):
        return value
    meta = {**value["metadata"], "finalizers": after}
    if not after:
        del meta["finalizers"]
    return {**value, "metadata": meta}


def status_of(resource: Resource, deletion: DeletionResult) -> KubeObject:
    """Return the Status of a successful deletion."""
    meta = deletion.value["metadata"]
    group = {"group": resource.group} if resource.group else {}
    details = {"name": meta["name"], **group, "kind": resource.plural, "uid": meta["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
