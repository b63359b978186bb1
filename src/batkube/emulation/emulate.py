"""Execute one emulated run, from its settings to its output folder, including the clean-up of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from batkube.cluster.jobs.outcomes import Outcome
from batkube.cluster.jobs.submission_forms import queue_name
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.environment import RunEnvironment, new_run_name
from batkube.emulation.job_tracker import JobTracker
from batkube.emulation.manifests import ManifestOptions
from batkube.emulation.output_files import OutputWriter, RunContext
from batkube.emulation.preflight import check_access, plan_jobs, read_nodes
from batkube.emulation.settings import Emulation, JobKind
from batkube.emulation.workload_runner import ControlledClock, RunTarget, WorkloadRunner
from batkube.kernel.errors import RunFailed
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant, human_duration, seconds
from batkube.kernel.stopwatch import CpuStopwatch
from batkube.outputs.files.folder import OutputFolder
from batkube.platforms.model import Platform
from batkube.platforms.reader import read_platform
from batkube.workloads.model import Workload
from batkube.workloads.reader import read_workload

Progress = Callable[[int, int, Instant], None]
"""Receives the number of ended jobs, the number of all jobs, and the current time of the run."""

#: A submission that is delayed by more than this is noted.
_MAX_SUBMISSION_DELAY = seconds(1)


def emulate(
    emulation: Emulation,
    out: Path,
    *,
    force: bool = False,
    command: Sequence[str] = (),
    progress: Progress = lambda done, total, now: None,
) -> list[Outcome]:
    """Run a workload on a real cluster, write the folder `out`, and return the outcomes of the jobs.

    Raises InputError, before anything is created, if the cluster or the workload is unsuitable. Raises RunFailed if
    jobs have no outcome; the observations until then are written, and the cluster is cleaned up in any case.
    """
    folder = OutputFolder(out, force=force)
    stopwatch = CpuStopwatch()
    workloads = [read_workload(path, name=f"w{number}") for number, path in enumerate(emulation.workloads)]
    platform = None if emulation.platform is None else read_platform(emulation.platform)
    priorities = sorted({job.priority for workload in workloads for job in workload.jobs if job.priority})
    cluster = ClusterConnection(emulation.kubeconfig, emulation.context)
    version, pod_group_api = check_access(cluster, emulation, priorities)
    nodes = read_nodes(cluster, emulation, platform)
    planned_jobs = plan_jobs(workloads, emulation, nodes, platform)
    notes = FidelityNotes()
    sources: list[Workload | Platform] = [*workloads, *([platform] if platform else [])]
    for inputs in sources:
        for note, count in inputs.notes:
            notes.add(note, example=inputs.source, count=count)
    run = new_run_name()
    options = ManifestOptions(
        run, emulation.kind, emulation.image, emulation.scheduler_name, nodes.has_kwok_taint, pod_group_api
    )
    queues = (
        sorted({queue_name(planned.job) for planned in planned_jobs}) if emulation.kind is JobKind.KUEUE_JOB else ()
    )
    environment = RunEnvironment(cluster, options, emulation.namespace, priorities, queues)
    context = RunContext(emulation, nodes, cluster.url, version, run, environment.namespace, command, stopwatch)
    with folder.writing():
        tracker = JobTracker(planned_jobs, emulation.kind)
        target = RunTarget(cluster, environment.namespace, options)
        runner = WorkloadRunner(target, planned_jobs, tracker, ControlledClock(emulation.speed), emulation.patience)
        failure = _run_and_clean_up(environment, runner, notes, progress) or tracker.all_rejected_failure
        outcomes = OutputWriter(tracker, context, notes).write(folder, failure)
    if failure is not None:
        raise RunFailed(f"{failure}\n  the observations until then are in {folder.path}") from failure
    return outcomes


def _run_and_clean_up(
    environment: RunEnvironment, runner: WorkloadRunner, notes: FidelityNotes, progress: Progress
) -> RunFailed | None:
    """Run the workload and clean up the cluster in any case; return the failure, if any."""
    failure = None
    try:
        environment.prepare()
        runner.run(progress)
    except RunFailed as error:
        failure = error
    except KeyboardInterrupt:
        failure = RunFailed(f"interrupted at {human_duration(runner.now)}")
    try:
        environment.clean_up()
    except RunFailed as error:
        notes.add(FidelityNote("cluster", "objects of the run may be left in the cluster"), example=str(error))
    except KeyboardInterrupt:
        failure = RunFailed(f"interrupted twice, so the cluster was not cleaned up: {environment.manual_cleanup}")
    if runner.max_delay > _MAX_SUBMISSION_DELAY:
        note = FidelityNote("submission", "jobs were submitted late: the machine or the cluster was busy")
        notes.add(note, example=f"by up to {human_duration(runner.max_delay)}")
    return failure
