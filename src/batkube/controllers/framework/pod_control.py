"""Creates, adopts, releases and deletes pods on behalf of a controller object, with events.

Kubernetes: pkg/controller/controller_utils.go (RealPodControl), controller_ref_manager.go, replicaset/replica_set.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from batkube.cluster.client import ApiError, Client, ignore_not_found
from batkube.cluster.event_recorder import EventNote, EventRecorder, EventType
from batkube.cluster.object_meta import (
    controller_reference,
    is_being_deleted,
    key_of,
    namespace_of,
    with_metadata,
    without_finalizer,
)
from batkube.cluster.selectors import LabelSelector, selector_of
from batkube.cluster.store import Key, KubeObject
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.kernel.agenda import Agenda
from batkube.kernel.instants import Instant

POD = "pods"
_NOT_FOUND = 404
#: Size of the first batch of a slow start; each successful batch doubles it.
_FIRST_BATCH_SIZE = 1


class EventMessages(NamedTuple):
    """Templates of event messages: `{pod}` and `{owner}` are names, `{problem}` is the error."""

    created: str = "Created pod: {pod}"
    not_created: str = "Error creating: {problem}"
    deleted: str = "Deleted pod: {pod}"
    not_deleted: str = "Error deleting: {problem}"


_DEFAULT_MESSAGES = EventMessages()


class PodControl:
    """Creates and deletes pods for controllers of one kind."""

    def __init__(
        self,
        agenda: Agenda,
        client: Client,
        events: EventRecorder,
        owner_storage: str,
        messages: EventMessages = _DEFAULT_MESSAGES,
    ) -> None:
        self._agenda = agenda
        self._client = client
        self._messages = messages
        self._events = events
        self._owner_storage = owner_storage

    def create(
        self, owner: KubeObject, template: KubeObject, now: Instant, *, name: str = "", generate_name: str = ""
    ) -> KubeObject:
        """Create a pod from `template`, owned by `owner`. A name in the template is ignored."""
        metadata = owner["metadata"]
        template_metadata = template.get("metadata") or {}
        metadata_fields = {
            "name": name,
            "generateName": generate_name or f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": template_metadata.get("labels"),
            "annotations": template_metadata.get("annotations"),
            "ownerReferences": [controller_reference(owner)],
            "finalizers": template_metadata.get("finalizers"),
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {field: value for field, value in metadata_fields.items() if value},
            "spec": template["spec"],
        }
        try:
            created = self._client.create(POD, pod, now)
        except ApiError as error:
            self._record_event(owner, "Warning", "FailedCreate", self._messages.not_created, pod, now, error.message)
            raise
        self._record_event(owner, "Normal", "SuccessfulCreate", self._messages.created, created, now)
        return created

    def create_many(
        self, owner: KubeObject, templates: Sequence[tuple[KubeObject, str]], now: Instant
    ) -> tuple[int, ApiError | None]:
        """Create a pod from each template and name prefix; return the number of pods, and the first error.

        Creates batches of 1, 2, 4, … pods. After an error the current batch is completed and no other one started, so
        that an exhausted quota is not hit five hundred times (Kubernetes: slowStartBatch). Creates fewer pods if
        requests wait; the new pods cause the next reconciliation, which creates the others.
        """
        is_turn_over = self._agenda.start_turn()
        created, size, problem = 0, _FIRST_BATCH_SIZE, None
        position = 0
        while position < len(templates) and problem is None:
            for template, prefix in templates[position : position + size]:
                if created and is_turn_over():
                    return created, problem
                try:
                    self.create(owner, template, now, generate_name=prefix)
                    created += 1
                except ApiError as error:
                    problem = problem or error
            position += size
            size *= 2
        return created, problem

    def delete(self, owner: KubeObject, pod: KubeObject, now: Instant) -> None:
        """Delete a pod; a pod that no longer exists is not an error."""
        try:
            self._client.delete(POD, key_of(pod), now)
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return
            self._record_event(owner, "Warning", "FailedDelete", self._messages.not_deleted, pod, now, error.message)
            raise
        self._record_event(owner, "Normal", "SuccessfulDelete", self._messages.deleted, pod, now)

    def _record_event(
        self,
        owner: KubeObject,
        kind: EventType,
        reason: str,
        template: str,
        pod: KubeObject,
        now: Instant,
        problem: str = "",
    ) -> None:
        names = {"pod": pod["metadata"].get("name", ""), "owner": owner["metadata"]["name"]}
        note = EventNote(kind, reason, template.format(**names, problem=problem))
        self._events.record(owner, self._owner_storage, note, now)


def claim_objects(
    client: Client,
    members: OwnerIndex,
    owner: KubeObject,
    now: Instant,
    *,
    eligible: Callable[[KubeObject], bool] = lambda obj: True,
    finalizer: str = "",
) -> list[KubeObject]:
    """Adopt matching orphans, release objects that no longer match, and return the objects that `owner` controls.

    Adopted objects get `finalizer`, if set. Only `eligible` objects are considered. An owner that is being deleted
    adopts and releases nothing. Kubernetes: controller_ref_manager.go, ClaimObject.
    """
    metadata, selector = owner["metadata"], pod_selector(owner)
    is_terminating = is_being_deleted(owner)
    orphans = [obj for obj in members.orphans(metadata["namespace"], selector) if eligible(obj)]
    claimed = []
    for obj in filter(eligible, members.owned_by(metadata["uid"])):
        if selector.matches(obj["metadata"].get("labels")):
            claimed.append(obj)
        elif not is_terminating:
            _update_unless_gone(client, members.storage, _released(obj, owner, finalizer), now)
    if is_terminating:
        return claimed
    for obj in orphans:
        if not is_being_deleted(obj):
            adopted = _update_unless_gone(client, members.storage, _adopted(obj, owner, finalizer), now)
            if adopted is not None:
                claimed.append(adopted)
    return claimed


def _adopted(obj: KubeObject, owner: KubeObject, finalizer: str) -> KubeObject:
    metadata = obj["metadata"]
    finalizers = metadata.get("finalizers", [])
    if finalizer and finalizer not in finalizers:
        finalizers = [*finalizers, finalizer]
    references = [*metadata.get("ownerReferences", ()), controller_reference(owner)]
    return with_metadata(obj, ownerReferences=references, finalizers=finalizers or None)


def _released(obj: KubeObject, owner: KubeObject, finalizer: str) -> KubeObject:
    uid = owner["metadata"]["uid"]
    references = [reference for reference in obj["metadata"].get("ownerReferences", ()) if reference["uid"] != uid]
    return with_metadata(without_finalizer(obj, finalizer), ownerReferences=references or None)


def _update_unless_gone(client: Client, storage: str, obj: KubeObject, now: Instant) -> KubeObject | None:
    written = None
    with ignore_not_found():
        written = client.update(storage, obj, now)
    return written


def pod_selector(owner: KubeObject) -> LabelSelector:
    """Return the pod selector of an object; ReplicationControllers have plain labels instead of a LabelSelector."""
    selector = owner["spec"].get("selector")
    return selector_of({"matchLabels": selector} if owner["kind"] == "ReplicationController" else selector)


def owner_key(reference: KubeObject | None, group: str, kind: str, dependent: Key) -> Key | None:
    """Return the key of the owner of `dependent` if `reference` names a `kind` of API group `group`, else None."""
    if reference is None or reference["kind"] != kind or reference["apiVersion"].rpartition("/")[0] != group:
        return None
    return Key(f"{namespace_of(dependent)}/{reference['name']}")
