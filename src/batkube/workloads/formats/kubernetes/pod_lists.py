"""Reading what a running cluster says of its pods: `kubectl get pods,events -A -o json`.

A pod's status tells when its containers began and ended, in whole seconds. Of pods that are deleted already only their
events are left, for an hour: these say that there were such pods, and nothing of how long they ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.workloads import fields as take
from batkube.workloads.fields import Place
from batkube.workloads.files import read_bytes
from batkube.workloads.formats.kubernetes.pod_histories import history_of, workload_from_histories
from batkube.workloads.model import Workload

DELETED_BEFORE_LIST = FidelityNote(
    "workload", "a pod is known by its events only, as it was deleted before the list: it is left out"
)
OTHER_KINDS = FidelityNote("workload", "an object of the list is neither a pod nor an event, and is passed over")
_REMEDY = "write it with: kubectl get pods,events -A -o json"


def read_pod_list(path: Path, name: str) -> Workload:
    """Return the pods of a list that began and ended as a workload called `name`. Raises InputError."""
    try:
        content: Any = msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(path, problem=f"is not JSON: {error}", remedy=_REMEDY) from None
    if not isinstance(content, Mapping) or not isinstance(content.get("items"), list):
        raise InputError(path, problem="is no list of Kubernetes objects: it has no `items`", remedy=_REMEDY)
    # A list of one kind does not repeat it in each item.
    usual = str(content.get("kind") or "").removesuffix("List")
    courses, notes, known, told = [], Counter[FidelityNote](), set(), set()
    for number, item in enumerate(content["items"]):
        place = (Place(path) / "items")[number]
        fields = take.mapping(place, item)
        kind = fields.get("kind") or usual
        if kind == "Pod":
            course = history_of(place, fields)
            status = fields.get("status")
            course.update_from_status(status if isinstance(status, Mapping) else {})
            courses.append(course)
            known.add((course.namespace, course.name))
        elif kind == "Event":
            about = fields.get("involvedObject") or fields.get("regarding")
            if isinstance(about, Mapping) and about.get("kind") == "Pod":
                told.add((str(about.get("namespace") or "default"), str(about.get("name"))))
        else:
            notes[OTHER_KINDS] += 1
    notes[DELETED_BEFORE_LIST] += len(told - known)
    return workload_from_histories(courses, path, name, notes)
