"""The server's controllers for definitions: names, conditions, establishment, deletion.

In kube-apiserver these are small controllers that each watch definitions and write their status. Here they run
synchronously, one after the other, and return each successive state, so that watches report the same steps.

Kubernetes: apiextensions-apiserver/pkg/controller/{status,establish,nonstructuralschema,apiapproval,finalizer}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from batkube.api.custom.definitions.api_approval import approval_state, is_protected
from batkube.api.custom.schemas.structural import Json
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, rfc3339

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
NAMES_ACCEPTED, ESTABLISHED, TERMINATING = "NamesAccepted", "Established", "Terminating"

Condition = dict[str, Any]


def is_condition_true(definition: KubeObject, kind: str) -> bool:
    """Return whether a condition is True."""
    condition = _find_condition(definition, kind)
    return condition is not None and condition["status"] == "True"


def is_served(definition: KubeObject) -> bool:
    """Return whether instances are served: the names are accepted, or were when the definition was established."""
    return is_condition_true(definition, NAMES_ACCEPTED) or is_condition_true(definition, ESTABLISHED)


def _find_condition(definition: KubeObject, kind: str) -> Condition | None:
    for condition in (definition.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            match: Condition = condition
            return match
    return None


def with_condition(
    definition: KubeObject, kind: str, status: str, reason: str, message: str, now: Instant
) -> KubeObject:
    """Return the definition with a condition set; lastTransitionTime changes only with the status."""
    old = _find_condition(definition, kind)
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else rfc3339(now)
    new = {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    conditions = list(definition["status"].get("conditions") or [])
    if old is None:
        conditions.append(new)
    else:
        conditions[conditions.index(old)] = new
    return {**definition, "status": {**definition["status"], "conditions": conditions}}


# Names


def controller_updates(definition: KubeObject, others: Iterable[KubeObject], now: Instant) -> list[KubeObject]:
    """Return the successive states in which the controllers put a definition; none if nothing changes.

    `others` are the other definitions; those of the same group may already use a name.
    """
    steps = []
    for controller in (_update_accepted_names, _update_approval, _update_established):
        changed = controller(definition, others, now)
        if changed is not None:
            definition = changed
            steps.append(changed)
    return steps


def _update_accepted_names(definition: KubeObject, others: Iterable[KubeObject], now: Instant) -> KubeObject | None:
    """Accept the names that no other definition of the group uses (NamingConditionController)."""
    requested, accepted = definition["spec"]["names"], definition["status"]["acceptedNames"]
    if _without_empty_names(requested) == _without_empty_names(accepted):
        return None
    names, reason, message = _accepted_names(definition, others)
    status = "False" if reason else "True"
    old = _find_condition(definition, NAMES_ACCEPTED)
    reason, message = reason or "NoConflicts", message or "no conflicts found"
    if (
        _without_empty_names(names) == _without_empty_names(accepted)
        and old is not None
        and (old["status"], old["reason"], old["message"]) == (status, reason, message)
    ):
        return None
    definition = {**definition, "status": {**definition["status"], "acceptedNames": names}}
    definition = with_condition(definition, NAMES_ACCEPTED, status, reason, message, now)
    if is_condition_true(definition, ESTABLISHED):
        return definition
    if status == "True":
        installing = "the initial names have been accepted"
        return with_condition(definition, ESTABLISHED, "False", "Installing", installing, now)
    if _find_condition(definition, ESTABLISHED) is None:
        problem = "not all names are accepted"
        return with_condition(definition, ESTABLISHED, "False", "NotAccepted", problem, now)
    return definition


def _without_empty_names(names: dict[str, Any]) -> dict[str, Any]:
    return {key: name for key, name in names.items() if name}


def _accepted_names(definition: KubeObject, others: Iterable[KubeObject]) -> tuple[dict[str, Any], str, str]:
    """Return the accepted names, with reason and message of the last conflict ("" if there is none)."""
    names, accepted = definition["spec"]["names"], dict(definition["status"]["acceptedNames"])
    resources, kinds = _names_in_use(definition, others)
    reason = message = ""
    for key, taken in (("plural", resources), ("singular", resources), ("shortNames", resources)):
        conflicts = _conflicts(names.get(key), accepted.get(key), taken)
        if conflicts:
            reason, message = f"{key[0].upper()}{key[1:]}Conflict", _conflict_message(conflicts)
        else:
            _accept_name(accepted, key, names.get(key))
    for key in ("kind", "listKind"):
        conflicts = _conflicts(names.get(key), accepted.get(key), kinds)
        if conflicts:
            reason, message = f"{key[0].upper()}{key[1:]}Conflict", _conflict_message(conflicts)
        else:
            _accept_name(accepted, key, names.get(key))
    _accept_name(accepted, "categories", names.get("categories"))
    return accepted, reason, message


def _names_in_use(definition: KubeObject, others: Iterable[KubeObject]) -> tuple[set[str], set[str]]:
    """Return the resource names and kinds in use in the group, including the definition's own."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in (definition, *others):
        if other["spec"].get("group") == definition["spec"].get("group"):
            names = (other.get("status") or {}).get("acceptedNames") or {}
            resources.update((names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())))
            kinds.update((names.get("kind", ""), names.get("listKind", "")))
    return resources, kinds


def _conflicts(requested: Json, accepted: Json, in_use: set[str]) -> list[str]:
    if isinstance(requested, list):
        return [name for name in requested if name not in (accepted or ()) and name in in_use]
    return [requested] if requested and requested != accepted and requested in in_use else []


def _conflict_message(names: list[str]) -> str:
    problems = [f'"{name}" is already in use' for name in names]
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _accept_name(accepted: dict[str, Any], key: str, name: Json) -> None:
    if name or key in ("plural", "kind"):
        accepted[key] = name
    else:
        accepted.pop(key, None)


def _update_approval(definition: KubeObject, others: Iterable[KubeObject], now: Instant) -> KubeObject | None:
    """Update the condition KubernetesAPIApprovalPolicyConformant of community APIs (*.k8s.io)."""
    if not is_protected(definition["spec"]["group"]):
        return None
    state, message = approval_state(definition)
    status, reason = state.value
    kind = "KubernetesAPIApprovalPolicyConformant"
    old = _find_condition(definition, kind)
    if old is not None and (old["status"], old["reason"], old["message"]) == (status, reason, message):
        return None
    return with_condition(definition, kind, status, reason, message, now)


def _update_established(definition: KubeObject, others: Iterable[KubeObject], now: Instant) -> KubeObject | None:
    """Set the condition Established once the names are accepted."""
    if not is_condition_true(definition, NAMES_ACCEPTED) or is_condition_true(definition, ESTABLISHED):
        return None
    message = "the initial names have been accepted"
    return with_condition(definition, ESTABLISHED, "True", "InitialNamesAccepted", message, now)


# Deletion


def with_deletion_pending(definition: KubeObject, now: Instant) -> KubeObject:
    """Return the definition after a deletion request: its finalizer keeps it until all instances are deleted."""
    meta = {**definition["metadata"], "deletionTimestamp": rfc3339(now)}
    finalizers = list(meta.get("finalizers") or [])
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    meta["finalizers"] = finalizers
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    return with_condition(
        {**definition, "metadata": meta}, TERMINATING, "True", "InstanceDeletionPending", message, now
    )


def with_deletion_in_progress(definition: KubeObject, now: Instant) -> KubeObject:
    """Return the definition while its instances are being deleted."""
    message = "CustomResource deletion is in progress"
    return with_condition(definition, TERMINATING, "True", "InstanceDeletionInProgress", message, now)


def with_deletion_completed(definition: KubeObject, now: Instant) -> KubeObject:
    """Return the definition without its finalizer, once no instance is left."""
    if is_condition_true(definition, ESTABLISHED):
        reason, message = "InstanceDeletionCompleted", "removed all instances"
    else:
        reason, message = "NeverEstablished", "resource was never established"
    meta = dict(definition["metadata"])
    finalizers = [name for name in meta.get("finalizers") or () if name != CLEANUP_FINALIZER]
    meta["finalizers"] = finalizers
    if not finalizers:
        del meta["finalizers"]
    return with_condition({**definition, "metadata": meta}, TERMINATING, "False", reason, message, now)
