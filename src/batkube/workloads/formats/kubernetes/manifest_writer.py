"""Write Kubernetes manifests: one batch/v1 Job per job. A real cluster can run them, and our reader can read them.

The container sleeps for the run time of the job; annotations hold the exact times. Priorities become PriorityClasses,
because the Priority admission plugin rejects any other value of a pod's `priority`
(Kubernetes: plugin/pkg/admission/priority/admission.go). Text values are JSON strings, which are valid YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from batkube.kernel.instants import NANOSECONDS_PER_SECOND
from batkube.kernel.quantities import format_amount
from batkube.workloads.delay_profiles import exact_seconds
from batkube.workloads.formats.kubernetes.annotations import DURATION, EXIT_CODE, SUBMIT, USER, WALLTIME
from batkube.workloads.history import STEP_LABEL, step_text
from batkube.workloads.model import Job, Workload
from batkube.workloads.run_times import fixed_run_time

_IMAGE = "busybox"
#: The name of a Job becomes a label of its pods, so it must be an RFC 1123 label (Kubernetes documentation, "Jobs").
_MAX_NAME_LENGTH = 63
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NUMBER_SUFFIX_LENGTH = 8
_FORBIDDEN_CHARACTERS = re.compile(r"[^a-z0-9-]+")


def manifests_text(workload: Workload) -> Iterator[str]:
    """Yield the history of `workload` in comments, and its YAML documents."""
    yield from (f"# {STEP_LABEL}: {step_text(step)}\n" for step in workload.header.history)
    for priority in dict.fromkeys(job.priority for job in workload.jobs if job.priority):
        yield (
            "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
            f"metadata:\n  name: {priority_class_name(priority)}\nvalue: {priority}\n"
        )
    used: set[str] = set()
    for job in workload.jobs:
        run = fixed_run_time(job, workload.source, "a manifest")
        yield _manifest(job, exact_seconds(run), _object_name(job.name, used))


def priority_class_name(priority: int) -> str:
    """Return the name of the PriorityClass of a priority."""
    return f"priority-{priority}" if priority >= 0 else f"priority-minus-{-priority}"


def is_object_name(name: str) -> bool:
    """Return whether `name` is valid as the name of a Kubernetes Job."""
    return _OBJECT_NAME.fullmatch(name) is not None


def _object_name(name: str, used: set[str]) -> str:
    """Return `name` converted to a valid object name, with a number appended if it is already used."""
    cleaned = _FORBIDDEN_CHARACTERS.sub("-", name.lower()).strip("-") or "job"
    shortened = cleaned[: _MAX_NAME_LENGTH - _NUMBER_SUFFIX_LENGTH].strip("-")
    candidate, number = cleaned if len(cleaned) <= _MAX_NAME_LENGTH else shortened, 1
    while candidate in used:
        number += 1
        candidate = f"{shortened}-{number}"
    used.add(candidate)
    return candidate


def _manifest(job: Job, run_s: str, name: str) -> str:
    annotations = {DURATION: run_s, SUBMIT: exact_seconds(job.submit)}
    if job.walltime is not None:
        annotations[WALLTIME] = exact_seconds(job.walltime)
    if job.profile.ret:
        annotations[EXIT_CODE] = str(job.profile.ret)
    if job.user:
        annotations[USER] = job.user
    command = f"sleep {run_s}; exit {job.profile.ret}" if job.profile.ret else f"sleep {run_s}"
    lines = [
        "---",
        "apiVersion: batch/v1",
        "kind: Job",
        "metadata:",
        f"  name: {_quoted(name)}",
        "  annotations:",
        *(f"    {key}: {_quoted(value)}" for key, value in annotations.items()),
        "spec:",
        f"  completions: {job.size}",
        f"  parallelism: {job.size}",
        "  backoffLimit: 0",
        "  template:",
        "    spec:",
        *_pod_lines(job),
        "      restartPolicy: Never",
        "      containers:",
        "      - name: main",
        f"        image: {_quoted(job.image or _IMAGE)}",
        f"        command: [sh, -c, {_quoted(command)}]",
        *_resource_lines(job),
    ]
    return "\n".join(lines) + "\n"


def _pod_lines(job: Job) -> Iterator[str]:
    if job.scheduler:
        yield f"      schedulerName: {_quoted(job.scheduler)}"
    if job.priority:
        yield f"      priorityClassName: {priority_class_name(job.priority)}"
    if job.walltime is not None:
        # On the pod and not on the Job: the deadline of a Job counts from its startTime, including the time in which
        # its pods are pending (pkg/controller/job/job_controller.go, pastActiveDeadline).
        yield f"      activeDeadlineSeconds: {-(-job.walltime // NANOSECONDS_PER_SECOND)}"


def _resource_lines(job: Job) -> Iterator[str]:
    if not job.requests:
        return
    yield "        resources:"
    yield "          requests:"
    for resource, amount in job.requests:
        yield f"            {_quoted(resource)}: {_quoted(format_amount(resource, amount))}"
    extended = [(resource, amount) for resource, amount in job.requests if "/" in resource]
    if extended:
        # Limit and request of an extended resource must be equal (Kubernetes: pkg/apis/core/validation).
        yield "          limits:"
        for resource, amount in extended:
            yield f"            {_quoted(resource)}: {_quoted(format_amount(resource, amount))}"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
