"""Workflows: an actor for each, which submits a task as a job when all that it waits for have ended.

Imitated: Batsim 4.2.1, workflow_submitter_process of src/job_submitter.cpp. Jobs are numbered as they are submitted,
and have ten seconds more than they need as their walltime. The server calls back when a job has ended; not when it was
killed or rejected, for which a workflow waits for ever.
"""

from __future__ import annotations

import functools
from collections import deque

from batkube.batsim.server.batsim_server import BatsimServer
from batkube.batsim.server.submitters import END_NOTIFICATIONS, JOBS, announce
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.jobs import JobRegistry, LiveJob
from batkube.kernel.instants import Duration, Instant, as_float_s
from batkube.workloads.formats.batsim.dax import Workflow, WorkflowTask
from batkube.workloads.model import Delay, Job

#: How much longer than its task a job may take.
_MARGIN = Duration(10_000_000_000)
#: Jobs are described with six decimals, and so are submitted at whole microseconds.
_TICK_NS = 1000


def submit_tasks(
    scene: ActorKernel, mailbox: Mailbox, server: BatsimServer, workloads: JobRegistry, workflow: Workflow, limit: int
) -> ActorCode:
    """Submit the tasks of a workflow, of which no more than `limit` run or wait at once; 0 for any number."""
    yield from mailbox.put(announce)
    calls = Mailbox()
    ready = deque(task for task in workflow.tasks.values() if not task.parent_count)
    waits = {task.id: task.parent_count for task in workflow.tasks.values()}
    submitted: dict[str, WorkflowTask] = {}
    count = 0
    while ready or submitted:
        while ready and (not limit or len(submitted) < limit):
            task = ready.popleft()
            live = workloads.add(*_describe_task(workflow.name, count, task, scene.now))
            count += 1
            server.notify_end(live, calls)
            yield from mailbox.put(functools.partial(server.on_jobs_submitted, [live]))
            submitted[live.id] = task
        ended = yield from calls.get()
        assert isinstance(ended, LiveJob)
        for child in submitted.pop(ended.id).children:
            waits[child] -= 1
            if not waits[child]:
                ready.append(workflow.tasks[child])
    yield from mailbox.put(
        functools.partial(server.on_source_finished, JOBS, END_NOTIFICATIONS[JOBS], is_workflow=True)
    )


def _describe_task(
    workload: str, number: int, task: WorkflowTask, now: Instant
) -> tuple[Job, dict[str, object], dict[str, object]]:
    """Return the job of a task, and how it and its profile are described."""
    profile = Delay(name=f"{workload}_{task.id}", duration=task.run_time)
    submit, walltime = (Duration(round(time / _TICK_NS) * _TICK_NS) for time in (now, task.run_time + _MARGIN))
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
