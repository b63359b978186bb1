"""The verbs that write, for every kind alike: create, update and patch against the store.

Follows the order of apiserver/pkg/registry/generic/registry/store.go and rest/{create,update}.go, since the order
decides which of several faults a client hears of.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from batkube.api.groups.scheme.strategies import strategy_of
from batkube.api.managed_fields import updates
from batkube.api.requests import statuses
from batkube.api.requests.options import parse_resource_version
from batkube.api.requests.statuses import Failure
from batkube.api.requests.webhooks.calls import WebhookCalls
from batkube.api.requests.writes import Behaviour, Write, key_of
from batkube.api.validation.field_errors import FieldError
from batkube.api.verbs.storage.owner_references import drop_duplicate_owners
from batkube.cluster.decisions import decision_of
from batkube.cluster.kinds import Resource
from batkube.cluster.store import DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant, rfc3339

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_LENGTH = 63
_SUFFIX_LENGTH = 5
_NAME_ATTEMPTS = 8
_SYSTEM_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_STALE_MESSAGE = "the object has been modified; please apply your changes to the latest version and try again"

#: Where the real server keeps a kind in etcd, if not under its plural; clients see it in conflict messages.
_ETCD_PREFIXES = {
    "nodes": "minions",
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "replicationcontrollers": "controllers",
    "ingresses.networking.k8s.io": "ingress",
    "customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices.apiregistration.k8s.io": "apiregistration.k8s.io/apiservices",
}
_JOBS, _VOLUME_CLAIMS = "jobs.batch", "persistentvolumeclaims"
#: What a job without any labels is labelled with: its pods' labels, of which it learns only when it is read.
_JOB_LABELS = ("job-name", "batch.kubernetes.io/job-name", "controller-uid", "batch.kubernetes.io/controller-uid")

ProduceObject = Callable[[KubeObject | None], KubeObject]
"""Makes the new object out of the live one."""


def with_resource_version(value: KubeObject, version: int) -> KubeObject:
    """Return the object as clients see it: with the version of its latest change."""
    return {**value, "metadata": {**value["metadata"], "resourceVersion": str(version)}}


def etcd_key(resource: Resource, key: Key) -> str:
    """Return the key under which the real server would keep the object."""
    if resource.custom:
        return f"/registry/{resource.group}/{resource.plural}/{key}"
    return f"/registry/{_ETCD_PREFIXES.get(resource.storage, resource.plural)}/{key}"


def precondition_failed(resource: Resource, key: Key, name: str, problem: str, *, is_dry: bool) -> Failure:
    """A uid or version given with a write is not that of the live object; a dry run does not get as far as etcd."""
    place = etcd_key(resource, key)
    text = (
        f"StorageError: invalid object, Code: 4, Key: {place.removeprefix('/registry') if is_dry else place}, "
        "ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {problem}"
    )
    return statuses.conflict(resource, name, text)


class StorageVersionConverter(Protocol):
    """How objects are shown in other versions of their kind than the stored one."""

    def in_version(self, resource: Resource, value: KubeObject) -> KubeObject:
        """Return a stored object in the version of `resource`."""

    def converter(self, resource: Resource) -> updates.Convert | None:
        """Return how an object in the version of `resource` is shown in others; None if there is but one."""


class Registry:
    """Creates and changes objects in the store as the API promises."""

    def __init__(
        self,
        store: Store,
        behaviours: Callable[[Resource], Behaviour],
        versions: StorageVersionConverter,
        review: Callable[[Write, KubeObject, KubeObject | None], Callable[[], None]],
        chance: random.Random,
        inquiries: WebhookCalls | None = None,
    ) -> None:
        self.store = store
        self._behaviours = behaviours
        self._version_converter = versions
        #: The last word of admission before a write, when the object is whole; what it returns is called when the
        #: write is done, and charges the quotas.
        self._validate_admission = review
        #: Draws uids and the ends of generated names.
        self._rng = chance
        #: Webhooks see uids and generated names, so that a request that comes again must come with the same.
        self._webhook_calls = inquiries
        #: New objects that the real server stores before their last defaults, which it fills in on every read: the
        #: first update of one is a change even if it changes nothing that can be seen.
        self._half_stored: dict[tuple[str, Key], bool] = {}
        for storage in (_JOBS, _VOLUME_CLAIMS):
            store.subscribe(storage, self._forget_half_stored)

    def get(self, resource: Resource, namespace: str, name: str) -> KubeObject:
        """Return a live object with its version, or fail with 404."""
        entry = self.store.entry(resource.storage, key_of(namespace, name))
        if entry is None:
            raise statuses.not_found(resource, name)
        return with_resource_version(*entry)

    # Create

    def create(self, write: Write, value: KubeObject) -> KubeObject:
        """Add a decoded and defaulted object."""
        behaviour = self._behaviours(write.resource)
        self.set_or_check_namespace(write, value)
        for field in _SYSTEM_FIELDS:
            value["metadata"].pop(field, None)
        write.name = write.name or value["metadata"].get("name", "")
        drop_duplicate_owners(value, write.warnings)
        self.set_managed_fields(write, value, None)
        behaviour.admit(write, value, None)
        return self._store_new(write, behaviour.to_storage_version(write, value))

    def _store_new(self, write: Write, value: KubeObject) -> KubeObject:
        behaviour, meta = self._behaviours(write.resource), value["metadata"]
        meta["uid"] = write.uid or self._draw_once("uid", self.new_uid)
        meta["creationTimestamp"] = rfc3339(write.now)
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = self._draw_once("name", lambda: self._generate_name(write, meta["generateName"]))
        version = meta.pop("resourceVersion", "")
        behaviour.prepare_create(write, value)
        name = meta.get("name", "")
        problems = behaviour.validate_create(write, value)
        if problems:
            raise statuses.invalid(write.stored, name, problems)
        if version not in ("", "0"):
            raise statuses.internal_error("resourceVersion should not be set on objects to be created")
        write.name = name
        charge = self._validate_admission(write, value, None)
        existing = self.store.get(write.stored.storage, write.key)
        if existing is not None and meta.get("generateName"):
            raise statuses.name_taken(write.resource, name)
        if existing is not None:
            raise statuses.already_exists(write.resource, name, going="deletionTimestamp" in existing["metadata"])
        if write.options.dry_run:
            return value
        charge()
        self.store.create(write.stored.storage, [write.key], [value], write.now)
        if _is_half_stored(write.stored, value):
            self._half_stored[write.stored.storage, write.key] = True
        return with_resource_version(value, self.store.version)

    def _forget_half_stored(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for key in batch.keys:
                self._half_stored.pop((batch.kind, key), None)

    def _draw_once(self, what: str, draw: Callable[[], str]) -> str:
        return draw() if self._webhook_calls is None else self._webhook_calls.once((what, "of a new object"), draw)

    def new_uid(self) -> str:
        """Draw a version-4 UUID."""
        bits = self._rng.getrandbits(128)
        bits = bits & ~(0xF << 76) & ~(0x3 << 62) | 0x4 << 76 | 0x2 << 62
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _generate_name(self, write: Write, base: str) -> str:
        """Return a generated name; one that is taken is drawn anew some times (RetryGenerateName, 1.32)."""
        for _ in range(_NAME_ATTEMPTS):
            suffix = "".join(self._rng.choices(_NAME_LETTERS, k=_SUFFIX_LENGTH))
            name = base[: _MAX_GENERATED_LENGTH - _SUFFIX_LENGTH] + suffix
            if self.store.get(write.stored.storage, key_of(write.namespace, name)) is None:
                break
        return name

    @staticmethod
    def set_or_check_namespace(write: Write, value: KubeObject) -> None:
        """Put the namespace of the path into the object, or refuse another (rest/meta.go)."""
        meta = value.setdefault("metadata", {})
        namespace = meta.get("namespace", "")
        if not write.resource.namespaced:
            meta.pop("namespace", None)
        elif not namespace:
            meta["namespace"] = write.namespace
        elif namespace != write.namespace:
            raise statuses.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )

    # Update

    def update(
        self, write: Write, produce: ProduceObject, *, upsert: bool = False, uid: str = "", applied: bool = False
    ) -> tuple[KubeObject, bool]:
        """Replace the live object by what `produce` makes of it; return it, and whether it was created.

        `produce` gets the live object with its version (None if there is none) and returns a decoded, defaulted one.
        `uid` is a precondition; `applied` says that `produce` has settled the ownership of fields already.
        """
        behaviour = self._behaviours(write.resource)
        entry = self.store.entry(write.stored.storage, write.key)
        if entry is None:
            if not upsert:
                raise statuses.not_found(write.resource, write.name)
            return self._upsert(write, produce(None), uid, applied), True
        old, version = entry
        if uid and uid != old["metadata"]["uid"]:
            problem = f"UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
            raise precondition_failed(write.resource, write.key, write.name, problem, is_dry=write.options.dry_run)
        current = with_resource_version(old, version)
        value = produce(current)
        if not applied:
            self.set_managed_fields(write, value, current)
        behaviour.admit(write, value, old)
        drop_duplicate_owners(value, write.warnings, admitted=True)
        value = behaviour.to_storage_version(write, value)
        self._check_resource_version(write, value, version)
        self._prepare_update(write, behaviour, value, old)
        charge = self._validate_admission(write, value, old)
        if _is_ready_to_remove(value):
            if not write.options.dry_run:
                self.store.delete(write.stored.storage, [write.key], write.now)
            return with_resource_version(value, version), False
        updates.keep_unchanged_timestamps(value, old)
        half_stored = self._half_stored.pop((write.stored.storage, write.key), False)
        if value == old and not half_stored:
            return current, False
        if write.options.dry_run:
            return with_resource_version(value, version), False
        charge()
        decision = decision_of(write.stored.storage, write.key, old, value)
        self.store.replace(write.stored.storage, [write.key], [value], write.now, decision=decision)
        return with_resource_version(value, self.store.version), False

    def _upsert(self, write: Write, value: KubeObject, uid: str, applied: bool) -> KubeObject:
        """Create on update, for the kinds that allow it and for server-side apply."""
        if uid:
            problem = f"UID in precondition: {uid}, UID in object meta: "
            raise precondition_failed(write.stored, write.key, write.name, problem, is_dry=write.options.dry_run)
        value["metadata"].pop("resourceVersion", None)
        if not applied:
            self.set_managed_fields(write, value, None)
        elif value["metadata"].get("uid"):
            own_uid = value["metadata"]["uid"]
            problem = f"uid mismatch: the provided object specified uid {own_uid}, and no existing object was found"
            raise statuses.conflict(write.resource, write.name, problem)
        behaviour = self._behaviours(write.resource)
        behaviour.admit(write, value, None)
        return self._store_new(write, behaviour.to_storage_version(write, value))

    def _check_resource_version(self, write: Write, value: KubeObject, version: int) -> None:
        """Refuse a write that was made from an older version than the live one (optimistic concurrency)."""
        own_version = value["metadata"].pop("resourceVersion", "")
        try:
            expected = parse_resource_version(own_version)
        except ValueError as problem:
            raise statuses.internal_error("strconv" + str(problem).partition("strconv")[2]) from problem
        if expected == 0:
            if write.stored.custom or not strategy_of(write.stored.storage).allow_unconditional_update:
                text = "Invalid value: 0: must be specified for an update"
                error = FieldError("FieldValueInvalid", "metadata.resourceVersion", text)
                raise statuses.invalid(write.resource, write.name, [error], by_resource=True)
        elif expected != version:
            raise statuses.conflict(write.resource, write.name, _STALE_MESSAGE)

    @staticmethod
    def _prepare_update(write: Write, behaviour: Behaviour, value: KubeObject, old: KubeObject) -> None:
        meta, before = value["metadata"], old["metadata"]
        _copy_field(meta, before, "generation")
        meta.pop("selfLink", None)
        behaviour.prepare_update(write, value, old)
        meta = value["metadata"]
        if not meta.get("uid"):
            meta["uid"] = before["uid"]
        meta["creationTimestamp"] = before["creationTimestamp"]
        if "deletionTimestamp" in before:
            meta["deletionTimestamp"] = before["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in before:
            meta.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
        problems = behaviour.validate_update(write, value, old)
        if problems:
            raise statuses.invalid(write.stored, write.name, problems)

    def set_managed_fields(self, write: Write, value: KubeObject, live: KubeObject | None) -> None:
        """Settle who owns which field (metadata.managedFields), in the version of the request."""
        entries = updates.entries_after_update(
            value,
            None if live is None else self._version_converter.in_version(write.resource, live),
            write.resource,
            manager=write.options.field_manager,
            subresource=write.subresource,
            now=write.now,
            convert=self._version_converter.converter(write.resource),
        )
        if entries:
            value["metadata"]["managedFields"] = entries
        else:
            value["metadata"].pop("managedFields", None)


def _is_half_stored(resource: Resource, value: KubeObject) -> bool:
    if resource.storage == _JOBS:
        labels = value["metadata"].get("labels") or {}
        return not value["spec"].get("manualSelector") and all(label in _JOB_LABELS for label in labels)
    return resource.storage == _VOLUME_CLAIMS


def _copy_field(meta: KubeObject, before: KubeObject, field: str) -> None:
    if field in before:
        meta[field] = before[field]
    else:
        meta.pop(field, None)


def _is_ready_to_remove(value: KubeObject) -> bool:
    """Return whether an update took the last finalizer of an object that is being deleted."""
    meta = value["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not value.get("spec", {}).get("finalizers")
    )


def check_name(value: KubeObject, name: str) -> None:
    """Refuse an object that is not the one of the path."""
    own_name = value.get("metadata", {}).get("name", "")
    if not own_name:
        raise statuses.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if own_name != name:
        raise statuses.bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
