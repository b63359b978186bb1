"""Read a list of the pods of a running cluster: `kubectl get pods,events -A -o json`.

A pod's status has the start and end times of its containers, in whole seconds. Of deleted pods only the events remain
(by default for an hour: kube-apiserver --event-ttl). Events show that a pod existed, but not its run time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.workloads import fields as require
from batkube.workloads.fields import Place
from batkube.workloads.files import read_bytes
from batkube.workloads.formats.kubernetes.pod_histories import history_of, workload_from_histories
from batkube.workloads.model import Workload

DELETED_BEFORE_LIST = FidelityNote(
    "workload", "a pod was deleted before the list was made, so only its events are known: it is left out"
)
OTHER_KINDS = FidelityNote("workload", "an object of the list is neither a Pod nor an Event: it is left out")
_REMEDY = "write it with: kubectl get pods,events -A -o json"


def read_pod_list(path: Path, name: str) -> Workload:
    """Read the pods of a list that started and ended as the workload `name`. Raises InputError."""
    try:
        content: Any = msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(path, problem=f"is not JSON: {error}", remedy=_REMEDY) from None
    if not isinstance(content, Mapping) or not isinstance(content.get("items"), list):
        raise InputError(path, problem="is not a list of Kubernetes objects: it has no `items`", remedy=_REMEDY)
    # A list of a single kind, such as PodList, does not repeat the kind in its items.
    default_kind = str(content.get("kind") or "").removesuffix("List")
    histories, notes, listed_pods, pods_in_events = [], Counter[FidelityNote](), set(), set()
    for number, item in enumerate(content["items"]):
        place = (Place(path) / "items")[number]
        fields = require.mapping(place, item)
        kind = fields.get("kind") or default_kind
        if kind == "Pod":
            history = history_of(place, fields)
            status = fields.get("status")
            history.update_from_status(status if isinstance(status, Mapping) else {})
            histories.append(history)
            listed_pods.add((history.namespace, history.name))
        elif kind == "Event":
            involved = fields.get("involvedObject") or fields.get("regarding")
            if isinstance(involved, Mapping) and involved.get("kind") == "Pod":
                pods_in_events.add((str(involved.get("namespace") or "default"), str(involved.get("name"))))
        else:
            notes[OTHER_KINDS] += 1
    notes[DELETED_BEFORE_LIST] += len(pods_in_events - listed_pods)
    return workload_from_histories(histories, path, name, notes)
