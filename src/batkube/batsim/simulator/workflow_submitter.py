"""Workflow submitters: an actor per workflow, which submits a task as a job when all its predecessors have ended.

Jobs are numbered in the order of submission. Their walltime is the run time of the task plus ten seconds. The server
notifies the submitter when a job completes, but not when it is killed or rejected: then the workflow never ends.

Imitated: Batsim 4.2.1, workflow_submitter_process in src/job_submitter.cpp.
"""

from __future__ import annotations

import functools
from collections import deque

from batkube.batsim.server.batsim_server import JOBS, BatsimServer
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.jobs import JobRegistry, LiveJob
from batkube.kernel.instants import Duration, Instant, as_float_s
from batkube.workloads.formats.batsim.dax import Workflow, WorkflowTask
from batkube.workloads.model import Delay, Job

#: The difference between the walltime of a job and the run time of its task.
_WALLTIME_MARGIN = Duration(10_000_000_000)
#: The resolution of dates in job descriptions, which have six decimals.
_TICK_NS = 1000


def submit_tasks(
    kernel: ActorKernel, mailbox: Mailbox, server: BatsimServer, registry: JobRegistry, workflow: Workflow, limit: int
) -> ActorCode:
    """Submit the tasks of a workflow, at most `limit` of them at once; 0 for no limit."""
    yield from mailbox.put(server.on_submitter_hello)
    completions = Mailbox()
    ready = deque(task for task in workflow.tasks.values() if not task.parent_count)
    pending_parents = {task.id: task.parent_count for task in workflow.tasks.values()}
    submitted: dict[str, WorkflowTask] = {}
    count = 0
    while ready or submitted:
        while ready and (not limit or len(submitted) < limit):
            task = ready.popleft()
            live = registry.add(*_describe_task(workflow.name, count, task, kernel.now))
            count += 1
            server.subscribe_to_end(live, completions)
            yield from mailbox.put(functools.partial(server.on_jobs_submitted, [live]))
            submitted[live.id] = task
        completed = yield from completions.get()
        assert isinstance(completed, LiveJob)
        for child in submitted.pop(completed.id).children:
            pending_parents[child] -= 1
            if not pending_parents[child]:
                ready.append(workflow.tasks[child])
    yield from mailbox.put(functools.partial(server.on_submitter_bye, JOBS, is_workflow=True))


def _describe_task(
    workload: str, number: int, task: WorkflowTask, now: Instant
) -> tuple[Job, dict[str, object], dict[str, object]]:
    """Return the job of a task, and the descriptions of the job and its profile."""
    profile = Delay(name=f"{workload}_{task.id}", duration=task.run_time)
    submit, walltime = (Duration(round(time / _TICK_NS) * _TICK_NS) for time in (now, task.run_time + _WALLTIME_MARGIN))
    job = Job(
        workload=workload, name=str(number), submit=Instant(submit), size=task.size, profile=profile, walltime=walltime
    )
    description: dict[str, object] = {
        "id": job.key,
        "subtime": as_float_s(submit),
        "walltime": as_float_s(walltime),
        "res": task.size,
        "profile": profile.name,
    }
    return job, description, {"type": "delay", "delay": as_float_s(task.run_time)}
