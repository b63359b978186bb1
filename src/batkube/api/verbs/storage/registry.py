"""Create and update objects of every kind in the store.

Follows the order of checks in apiserver/pkg/registry/generic/registry/store.go and
apiserver/pkg/registry/rest/{create,update}.go, since it decides which of several errors is reported.
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

#: The etcd prefix of kinds that kube-apiserver does not store under their plural; it appears in conflict messages.
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
#: The labels that a Job without labels gets by default from its pod template, but only when it is read back.
_JOB_LABELS = ("job-name", "batch.kubernetes.io/job-name", "controller-uid", "batch.kubernetes.io/controller-uid")

ProduceObject = Callable[[KubeObject | None], KubeObject]
"""Returns the new object, given the live one."""


def with_resource_version(value: KubeObject, version: int) -> KubeObject:
    """Return the object with its resourceVersion, as clients see it."""
    return {**value, "metadata": {**value["metadata"], "resourceVersion": str(version)}}


def etcd_key(resource: Resource, key: Key) -> str:
    """Return the etcd key of the object in kube-apiserver."""
    if resource.custom:
        return f"/registry/{resource.group}/{resource.plural}/{key}"
    return f"/registry/{_ETCD_PREFIXES.get(resource.storage, resource.plural)}/{key}"


def precondition_failed(resource: Resource, key: Key, name: str, problem: str, *, is_dry: bool) -> Failure:
    """Return the 409 of a failed uid precondition. The key in the message of a dry run has no etcd prefix."""
    full_key = etcd_key(resource, key)
    text = (
        f"StorageError: invalid object, Code: 4, Key: {full_key.removeprefix('/registry') if is_dry else full_key}, "
        "ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {problem}"
    )
    return statuses.conflict(resource, name, text)


class StorageVersionConverter(Protocol):
    """Converts objects between the versions of their kind."""

    def in_version(self, resource: Resource, value: KubeObject) -> KubeObject:
        """Return a stored object in the version of `resource`."""

    def converter(self, resource: Resource) -> updates.Convert | None:
        """Return a function that converts objects from the version of `resource`; None if there is only one version."""


class Registry:
    """Creates and updates objects with the semantics of the API."""

    def __init__(
        self,
        store: Store,
        behaviours: Callable[[Resource], Behaviour],
        versions: StorageVersionConverter,
        validate_admission: Callable[[Write, KubeObject, KubeObject | None], Callable[[], None]],
        rng: random.Random,
        calls: WebhookCalls | None = None,
    ) -> None:
        self.store = store
        self._behaviours = behaviours
        self._version_converter = versions
        #: Runs validating admission; returns a function that charges the quotas, to be called before the write.
        self._validate_admission = validate_admission
        #: Generates uids and the suffixes of generated names.
        self._rng = rng
        #: Keeps uids and generated names when a request is repeated, since webhooks have seen them.
        self._webhook_calls = calls
        #: New objects that kube-apiserver stores without some defaults, which it sets on every read. The first update
        #: of such an object writes those defaults, so it is a change even if nothing visible changes.
        self._half_stored: dict[tuple[str, Key], bool] = {}
        for storage in (_JOBS, _VOLUME_CLAIMS):
            store.subscribe(storage, self._forget_half_stored)

    def get(self, resource: Resource, namespace: str, name: str) -> KubeObject:
        """Return a live object with its resourceVersion; raises a 404."""
        entry = self.store.entry(resource.storage, key_of(namespace, name))
        if entry is None:
            raise statuses.not_found(resource, name)
        return with_resource_version(*entry)

    # Create

    def create(self, write: Write, value: KubeObject) -> KubeObject:
        """Create a decoded and defaulted object; raises Failure."""
        behaviour = self._behaviours(write.resource)
        self.set_or_check_namespace(write, value)
        for field in _SYSTEM_FIELDS:
            value["metadata"].pop(field, None)
        write.name = write.name or value["metadata"].get("name", "")
        drop_duplicate_owners(value, write.warnings)
        self.set_managed_fields(write, value, None)
        self._admit(write, value, None)
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

    def _admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Run mutating admission, and check the namespace again: webhooks may change it."""
        # Kubernetes: apiserver/pkg/registry/rest, BeforeCreate and BeforeUpdate.
        self._behaviours(write.resource).admit(write, value, old)
        self.set_or_check_namespace(write, value)

    def _forget_half_stored(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for key in batch.keys:
                self._half_stored.pop((batch.kind, key), None)

    def _draw_once(self, name: str, draw: Callable[[], str]) -> str:
        return draw() if self._webhook_calls is None else self._webhook_calls.once((name, "of a new object"), draw)

    def new_uid(self) -> str:
        """Return a random version-4 UUID."""
        bits = self._rng.getrandbits(128)
        bits = bits & ~(0xF << 76) & ~(0x3 << 62) | 0x4 << 76 | 0x2 << 62
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def _generate_name(self, write: Write, base: str) -> str:
        """Return a generated name; try again a few times if it is taken (feature gate RetryGenerateName)."""
        # Kubernetes: apiserver/pkg/storage/names/generate.go, GenerateName.
        for _ in range(_NAME_ATTEMPTS):
            suffix = "".join(self._rng.choices(_NAME_LETTERS, k=_SUFFIX_LENGTH))
            name = base[: _MAX_GENERATED_LENGTH - _SUFFIX_LENGTH] + suffix
            if self.store.get(write.stored.storage, key_of(write.namespace, name)) is None:
                break
        return name

    @staticmethod
    def set_or_check_namespace(write: Write, value: KubeObject) -> None:
        """Set the namespace of the path on the object; raises a 400 if the object has a different one."""
        # Kubernetes: apiserver/pkg/registry/rest/meta.go, EnsureObjectNamespaceMatchesRequestNamespace.
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
        """Replace the live object by the result of `produce`; return the new object, and whether it was created.

        * `produce` gets the live object with its resourceVersion (None if there is none), and returns a decoded and
          defaulted object.
        * `upsert`: whether to create the object if it does not exist.
        * `uid`: a precondition.
        * `applied`: whether `produce` has already set managedFields (server-side apply).
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
        self._admit(write, value, old)
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
        """Create an object on update, for kinds that allow it and for server-side apply."""
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
        self._admit(write, value, None)
        return self._store_new(write, behaviour.to_storage_version(write, value))

    def _check_resource_version(self, write: Write, value: KubeObject, version: int) -> None:
        """Raise a 409 if the write is based on an older version than the live one (optimistic concurrency)."""
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
        """Update metadata.managedFields, in the version of the request."""
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
    """Return whether an update removed the last finalizer of an object that is being deleted."""
    # Kubernetes: apiserver/pkg/registry/generic/registry/store.go, ShouldDeleteDuringUpdate.
    meta = value["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not value.get("spec", {}).get("finalizers")
    )


def check_name(value: KubeObject, name: str) -> None:
    """Raise a 400 if the object's name is not that of the path."""
    own_name = value.get("metadata", {}).get("name", "")
    if not own_name:
        raise statuses.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if own_name != name:
        raise statuses.bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")
