"""Read Kubernetes manifests: Pods and Jobs, with their run time in the annotation `batkube.io/duration`.

A manifest specifies a pod's requests but not its run time, so the annotation is required; others are optional. Each Pod
becomes a job of one pod, and each batch/v1 Job a gang of `completions` pods. PriorityClasses in the same file define
priorities. Objects of any other kind are left out with a note, unless the caller can apply objects (module `objects`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from batkube.files.yaml_reader import yaml_documents
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Instant, TooLong
from batkube.kernel.numbers import parse_int
from batkube.workloads import fields as require
from batkube.workloads import names
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.fields import Place
from batkube.workloads.files import open_lines, read_bytes
from batkube.workloads.formats.kubernetes.annotations import (
    DURATION,
    EXIT_CODE,
    SUBMIT,
    USER,
    annotated_duration,
    read_annotations,
    walltime_of,
)
from batkube.workloads.formats.kubernetes.objects import are_all_jobs, workload_from_objects
from batkube.workloads.formats.kubernetes.pod_requests import read_pod_requests
from batkube.workloads.history import UNREADABLE_STEP, commented_steps, steps_in
from batkube.workloads.model import Delay, Job, TraceHeader, Workload
from batkube.workloads.walltime_notes import WALLTIME_TOO_LONG

DEFAULT_SCHEDULER = "default-scheduler"
#: Classes that every cluster has (Kubernetes: pkg/apis/scheduling/v1/helpers.go, SystemPriorityClasses).
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
#: Fields of a pod's spec that constrain its placement, and that only real schedulers support.
PLACEMENT_FIELDS = (
    "affinity",
    "nodeName",
    "nodeSelector",
    "resourceClaims",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
)

_is_integer = re.compile("-?[0-9]+").fullmatch

LOW_PARALLELISM = FidelityNote(
    "workload", "a Job has parallelism below completions; here all its pods run at once, as a gang"
)
SUSPENSION_IGNORED = FidelityNote("workload", "a Job is suspended; here it is submitted nevertheless")


def read_manifests(path: Path, name: str, *, with_objects: bool = False) -> Workload:
    """Read the Pods and Jobs of the YAML file `path` as the workload `name`.

    With `with_objects`, a file that jobs cannot fully express becomes a workload of objects.
    """
    objects = list(_objects(path))
    if with_objects and not are_all_jobs(objects):
        return workload_from_objects(path, name, objects)
    reader = _ManifestJobs(path, name, _priority_classes(objects))
    for place, fields in objects:
        reader.add(place, fields)
    return _with_history(reader.workload())


def _with_history(workload: Workload) -> Workload:
    with open_lines(Path(workload.source)) as lines:
        history, unreadable = steps_in(commented_steps(lines))
    notes = (*workload.notes, *(((UNREADABLE_STEP, unreadable),) if unreadable else ()))
    return replace(workload, header=TraceHeader(history=history), notes=notes)


def _objects(path: Path) -> Iterator[tuple[Place, Mapping[str, object]]]:
    """Yield every object of the file and of the Lists in it, with a place that names the object."""
    for index, document in enumerate(yaml_documents(path, read_bytes(path)), 1):
        if document is None:
            continue
        place = Place(path) / f"document {index}"
        fields = require.mapping(place, document)
        if fields.get("kind") == "List":
            for number, item in enumerate(require.array(place / "items", fields.get("items"))):
                entry = (place / "items")[number]
                yield _with_object_name(entry, require.mapping(entry, item))
        else:
            yield _with_object_name(place, fields)


def _with_object_name(place: Place, fields: Mapping[str, object]) -> tuple[Place, Mapping[str, object]]:
    metadata = fields.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    kind = fields.get("kind")
    description = f" ({kind} {name or 'without name'})" if kind else ""
    return Place(place.path) / f"{place.at}{description}", fields


def _priority_classes(objects: list[tuple[Place, Mapping[str, object]]]) -> dict[str, int]:
    """Return the value of each PriorityClass; the global default under the empty name."""
    classes = dict(_SYSTEM_PRIORITIES)
    for place, fields in objects:
        if fields.get("kind") == "PriorityClass":
            metadata = require.mapping(place / "metadata", fields.get("metadata"))
            value = require.integer(place / "value", fields.get("value", 0))
            classes[require.string(place / "metadata" / "name", metadata.get("name"))] = value
            if fields.get("globalDefault") is True:
                classes[""] = value
    return classes


class _ManifestJobs:
    """Converts objects to jobs."""

    def __init__(self, path: Path, name: str, priorities: dict[str, int]) -> None:
        self._path = path
        self._name = name
        self._priorities = priorities
        self._jobs: list[Job] = []
        self._delays = DelayProfiles()
        self._place_of: dict[str, str] = {}
        self._notes: dict[FidelityNote, int] = {}

    def add(self, place: Place, fields: Mapping[str, object]) -> None:
        """Add one object."""
        kind = require.string(place / "kind", fields.get("kind"))
        if kind == "Pod":
            self._add(place, fields, place / "spec", require.mapping(place / "spec", fields.get("spec")), size=1)
        elif kind == "Job":
            spec = require.mapping(place / "spec", fields.get("spec"))
            template_place = place / "spec" / "template"
            template = require.mapping(template_place, spec.get("template"))
            pod_spec = require.mapping(template_place / "spec", template.get("spec"))
            self._add(place, fields, template_place / "spec", pod_spec, size=self._gang_size(place / "spec", spec))
        elif kind != "PriorityClass":
            self._note(FidelityNote("workload", f"an object of kind {kind} is left out"))

    def workload(self) -> Workload:
        """Return the jobs added so far, by submission; simultaneous ones in the order of the file."""
        if not self._jobs:
            raise InputError(
                self._path,
                problem="contains no workload object (Job, Deployment, Pod, …)",
                remedy="add at least one Pod, Job or Deployment; see docs/reference/workload-manifests.md",
            )
        self._jobs.sort(key=attrgetter("submit"))
        return Workload(name=self._name, source=str(self._path), jobs=self._jobs, notes=tuple(self._notes.items()))

    def _add(
        self, place: Place, fields: Mapping[str, object], spec_place: Place, spec: Mapping[str, object], size: int
    ) -> None:
        annotations = read_annotations(place, fields)
        submit = annotated_duration(place, annotations, SUBMIT)
        scheduler = require.string(spec_place / "schedulerName", spec.get("schedulerName", DEFAULT_SCHEDULER))
        try:
            walltime = walltime_of(place, annotations, fields, spec_place, spec)
        except TooLong:
            walltime = None
            self._note(WALLTIME_TOO_LONG)
        for key in PLACEMENT_FIELDS:
            if spec.get(key):
                self._note(FidelityNote("workload", f"in-process policies ignore {key}"))
        self._jobs.append(
            Job(
                workload=self._name,
                name=self._job_name(place, fields),
                submit=Instant(submit or 0),
                size=size,
                profile=self._profile(place, annotations),
                walltime=walltime,
                requests=read_pod_requests(spec_place, spec),
                user=_checked_name(place / USER, annotations.get(USER, "")),
                priority=self._priority(spec_place, spec),
                scheduler="" if scheduler == DEFAULT_SCHEDULER else scheduler,
                image=_image(spec),
            )
        )

    def _job_name(self, place: Place, fields: Mapping[str, object]) -> str:
        metadata = require.mapping(place / "metadata", fields.get("metadata"))
        name = require.string(place / "metadata" / "name", metadata.get("name"))
        _checked_name(place / "metadata" / "name", name)
        first = self._place_of.setdefault(name, place.at)
        if first != place.at:
            place.reject(f"has the same name, {name!r}, as {first}", "give each Pod and Job a unique name")
        return name

    def _gang_size(self, place: Place, spec: Mapping[str, object]) -> int:
        parallelism = require.integer(place / "parallelism", _value_of(spec, "parallelism", 1))
        # Without `completions`, a Job is a work queue of `parallelism` pods (Kubernetes documentation, "Jobs").
        size = require.positive_integer(place / "completions", _value_of(spec, "completions", max(parallelism, 1)))
        if 0 < parallelism < size:
            self._note(LOW_PARALLELISM)
        if spec.get("suspend") is True or parallelism == 0:
            self._note(SUSPENSION_IGNORED)
        return size

    def _profile(self, place: Place, annotations: Mapping[str, str]) -> Delay:
        run = annotated_duration(place, annotations, DURATION)
        if run is None:
            place.reject(
                f"has no annotation {DURATION}, so its run time is unknown",
                f'add metadata.annotations."{DURATION}", for example "90" (seconds) or "1h30m"',
            )
        profile = self._delays.profile_for(run)
        if EXIT_CODE not in annotations:
            return profile
        text = annotations[EXIT_CODE]
        code = parse_int(text) if _is_integer(text) else None
        if code is None:
            (place / EXIT_CODE).reject(f"is {text[:20]!r}, which is not a whole number")
        return Delay(name=f"{profile.name}_exit{text}", duration=run, ret=code) if code else profile

    def _priority(self, place: Place, spec: Mapping[str, object]) -> int:
        if spec.get("priority") is not None:
            return require.integer(place / "priority", spec["priority"])
        class_name = require.string(place / "priorityClassName", _value_of(spec, "priorityClassName", ""))
        if class_name not in self._priorities:
            if not class_name:
                return 0
            (place / "priorityClassName").reject(
                f"names the PriorityClass {class_name!r}, which is not in this file",
                "add the PriorityClass object, or write spec.priority",
            )
        return self._priorities[class_name]

    def _note(self, note: FidelityNote) -> None:
        self._notes[note] = self._notes.get(note, 0) + 1


def _checked_name(place: Place, name: str) -> str:
    if problem := names.name_problem(name):
        place.reject(problem, names.REMEDY)
    return name


def _image(spec: Mapping[str, object]) -> str:
    """Return the image of the first container, because image pulls are modelled per pod and not per container."""
    containers = spec.get("containers")
    first = containers[0] if isinstance(containers, list) and containers else None
    image = first.get("image") if isinstance(first, Mapping) else None
    return image if isinstance(image, str) else ""


def _value_of(fields: Mapping[str, object], key: str, default: object) -> object:
    """Return the value of `key`, or `otherwise`; as in Kubernetes, an explicit null counts as absent."""
    value = fields.get(key)
    return default if value is None else value
