"""Admission of pods: priority, tolerations, runtime class, service account.

Kubernetes: plugin/pkg/admission/{priority,defaulttolerationseconds,runtimeclass,serviceaccount}.
"""

from __future__ import annotations

import random
from typing import Any

from batkube.api.admission.attempts import Attempt
from batkube.api.checks.field_errors import go_quote
from batkube.cluster.store import Key, KubeObject

_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_PREEMPTS = "PreemptLowerPriority"

#: How long a pod stays on a node that fails; shared by all pods, which are never edited in place.
_TOLERATIONS: tuple[dict[str, Any], ...] = tuple(
    {"key": f"node.kubernetes.io/{problem}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for problem in ("not-ready", "unreachable")
)

_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_VOLUME = "kube-api-access-"
_TOKEN_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_TOKEN_SOURCES: tuple[dict[str, Any], ...] = (
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
)


# Priority


def set_priority(attempt: Attempt) -> None:
    """Give a new pod the priority of its class; a changed one keeps what it leaves out."""
    spec = attempt.value["spec"]
    if attempt.old is not None:
        for field in ("priority", "preemptionPolicy"):
            live = attempt.old["spec"].get(field)
            if spec.get(field) is None and live is not None:
                spec[field] = live
        return
    priority, policy = _priority(attempt, spec)
    given = spec.get("priority")
    if given is not None and given != priority:
        raise attempt.refused(
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
    spec["priority"] = priority
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        raise attempt.refused(
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    spec["preemptionPolicy"] = policy


def _priority(attempt: Attempt, spec: dict[str, Any]) -> tuple[int, str]:
    """Return priority and preemption policy of a new pod; it learns its class if there is a default one."""
    name = spec.get("priorityClassName")
    if name:
        chosen = attempt.store.get(_PRIORITY_CLASSES, Key(name))
        if chosen is None:
            raise attempt.refused(f"no PriorityClass with name {name} was found")
    else:
        chosen = _default_class(attempt)
        if chosen is None:
            return 0, _PREEMPTS
        spec["priorityClassName"] = chosen["metadata"]["name"]
    return chosen["value"], chosen.get("preemptionPolicy") or _PREEMPTS


def _default_class(attempt: Attempt) -> KubeObject | None:
    """Return the class of pods that name none: the lowest of those marked so."""
    marked = [each for each, _ in attempt.store.entries(_PRIORITY_CLASSES).values() if each.get("globalDefault")]
    return min(marked, key=lambda each: int(each["value"]), default=None)


def check_default_class(attempt: Attempt) -> None:
    """Refuse a second class marked as the default."""
    if attempt.value.get("globalDefault"):
        marked = _default_class(attempt)
        name = marked["metadata"]["name"] if marked else ""
        if marked and (attempt.old is None or name != attempt.value["metadata"]["name"]):
            raise attempt.refused(f"PriorityClass {name} is already marked as default. Only one default can exist")


# DefaultTolerationSeconds


def add_tolerations(attempt: Attempt) -> None:
    """Let a pod stay five minutes on a node that fails, unless it says how long."""
    spec = attempt.value["spec"]
    given = spec.get("tolerations")
    if not given:
        spec["tolerations"] = list(_TOLERATIONS)
        return
    missing = [
        each
        for each in _TOLERATIONS
        if not any(
            toleration.get("key") in (None, "", each["key"]) and toleration.get("effect") in (None, "", "NoExecute")
            for toleration in given
        )
    ]
    if missing:
        spec["tolerations"] = [*given, *missing]


# RuntimeClass


def _runtime_class(attempt: Attempt) -> KubeObject | None:
    name = attempt.value["spec"].get("runtimeClassName")
    if name is None:
        return None
    found = attempt.store.get("runtimeclasses.node.k8s.io", Key(name))
    if found is None:
        raise attempt.refused(f"pod rejected: RuntimeClass {go_quote(name)} not found")
    return found


def apply_runtime_class(attempt: Attempt) -> None:
    """Give a new pod the overhead of its runtime, and send it where that runtime is."""
    runtime = _runtime_class(attempt) if attempt.old is None else None
    if runtime is None:
        return
    spec = attempt.value["spec"]
    overhead = (runtime.get("overhead") or {}).get("podFixed")
    if runtime.get("overhead") is not None:
        if spec.get("overhead") and spec["overhead"] != overhead:
            raise attempt.refused("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        if overhead:
            spec["overhead"] = dict(overhead)
    scheduling = runtime.get("scheduling")
    if scheduling:
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.setdefault(key, value) != value:
                raise attempt.refused(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
        if selector:
            spec["nodeSelector"] = selector
        merged = _merged([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())])
        if merged:
            spec["tolerations"] = merged


def check_overhead(attempt: Attempt) -> None:
    """Refuse an overhead that is not the runtime's."""
    if attempt.old is not None:
        return
    runtime = _runtime_class(attempt)
    given = attempt.value["spec"].get("overhead")
    if runtime is not None and runtime.get("overhead") is not None:
        if (runtime["overhead"].get("podFixed") or {}) != (given or {}):
            raise attempt.refused("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    elif given is not None:
        raise attempt.refused("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _merged(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tolerations without those that another one covers (pkg/util/tolerations, MergeTolerations)."""
    merged: list[dict[str, Any]] = []
    for number, toleration in enumerate(tolerations):
        later = [each for each in tolerations[number + 1 :] if each != toleration]
        if not any(_covers(other, toleration) for other in [*merged, *later]):
            merged.append(toleration)
    return merged


def _covers(wide: dict[str, Any], narrow: dict[str, Any]) -> bool:
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and narrow.get("effect") != wide["effect"]:
        return False
    limit_s, asked_s = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and limit_s is not None and (asked_s is None or asked_s > limit_s):
        return False
    return exists or (narrow.get("operator") == "Equal" and narrow.get("value", "") == wide.get("value", ""))


# ServiceAccount


class ServiceAccounts:
    """Gives pods an account and the volume with its token; only where service accounts are switched on.

    There is no controller that makes the account `default` of every namespace, so it need not exist.
    """

    def __init__(self, chance: random.Random) -> None:
        #: Draws the ends of volume names.
        self._chance = chance

    def admit(self, attempt: Attempt) -> None:
        """Name the account of a new pod, and mount its token."""
        if attempt.old is not None:
            return
        spec = attempt.value["spec"]
        name = spec.get("serviceAccountName") or "default"
        account = attempt.store.get("serviceaccounts", Key(f"{attempt.namespace}/{name}"))
        if account is None and name != "default":
            problem = f"serviceaccount {go_quote(name)} not found"
            raise attempt.refused(f"error looking up service account {attempt.namespace}/{name}: {problem}")
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = account or {}
        wish = spec.get("automountServiceAccountToken")
        if wish is None:
            wish = account.get("automountServiceAccountToken")
        if wish is not False:
            self._mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": each.get("name", "")} for each in account["imagePullSecrets"]]

    def _mount_token(self, spec: dict[str, Any]) -> None:
        volumes = spec.get("volumes") or []
        own = [each["name"] for each in volumes if each.get("name", "").startswith(_TOKEN_VOLUME)]
        containers = [
            container
            for kind in ("initContainers", "containers")
            for container in spec.get(kind) or ()
            if not any(mount.get("mountPath") == _TOKEN_PATH for mount in container.get("volumeMounts") or ())
        ]
        if not containers:
            return
        name = own[0] if own else _TOKEN_VOLUME + "".join(self._chance.choices(_TOKEN_LETTERS, k=5))
        for container in containers:
            mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        if not own:
            projected = {"sources": list(_TOKEN_SOURCES), "defaultMode": 0o644}
            spec["volumes"] = [*volumes, {"name": name, "projected": projected}]
