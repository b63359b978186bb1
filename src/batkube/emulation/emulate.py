"""Execute one emulated run: from its description to its output folder, including the clean-up of the cluster."""

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
from batkube.emulation.player import Player, RunClock, RunTarget
from batkube.emulation.preflight import check_access, plan_jobs, read_nodes
from batkube.emulation.settings import Emulation, JobKind
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
"""Called now and then with: jobs ended, jobs in all, time reached."""

#: Submissions that come later than this after their time are worth a note.
_LATE_FROM = seconds(1)


def emulate(
    emulation: Emulation,
    out: Path,
    *,
    force: bool = False,
    command: Sequence[str] = (),
    progress: Progress = lambda done, total, now: None,
) -> list[Outcome]:
    """Play a workload on a real cluster into the folder `out`, and return how its jobs ended.

    Raises InputError when the cluster or the workload will not do, before anything is created, and RunFailed when jobs
    are left without an outcome; what was seen until then is kept, and the cluster is cleared in any case.
    """
    folder = OutputFolder(out, force=force)
    stopwatch = CpuStopwatch()
    workloads = [read_workload(path, name=f"w{number}") for number, path in enumerate(emulation.workloads)]
    platform = None if emulation.platform is None else read_platform(emulation.platform)
    priorities = sorted({job.priority for workload in workloads for job in workload.jobs if job.priority})
    access = ClusterConnection(emulation.kubeconfig, emulation.context)
    version, dialect = check_access(access, emulation, priorities)
    nodes = read_nodes(access, emulation, platform)
    tasks = plan_jobs(workloads, emulation, nodes, platform)
    notes = FidelityNotes()
    sources: list[Workload | Platform] = [*workloads, *([platform] if platform else [])]
    for inputs in sources:
        for note, count in inputs.notes:
            notes.add(note, example=inputs.source, count=count)
    run = new_run_name()
    style = ManifestOptions(
        run, emulation.kind, emulation.image, emulation.scheduler_name, nodes.has_kwok_taint, dialect
    )
    queues = sorted({queue_name(task.job) for task in tasks}) if emulation.kind is JobKind.KUEUE_JOB else ()
    ground = RunEnvironment(access, style, emulation.namespace, priorities, queues)
    around = RunContext(emulation, nodes, access.url, version, run, ground.namespace, command, stopwatch)
    with folder.writing():
        story = JobTracker(tasks, emulation.kind)
        stage = RunTarget(access, ground.namespace, style)
        player = Player(stage, tasks, story, RunClock(emulation.speed), emulation.patience)
        failure = _play_and_clean_up(ground, player, notes, progress) or story.all_rejected_failure
        outcomes = OutputWriter(story, around, notes).write(folder, failure)
    if failure is not None:
        raise RunFailed(f"{failure}\n  what was seen until then is in {folder.path}") from failure
    return outcomes


def _play_and_clean_up(
    ground: RunEnvironment, player: Player, notes: FidelityNotes, progress: Progress
) -> RunFailed | None:
    """Play the run, then clean up the cluster in any case; return the failure, if any."""
    failure = None
    try:
        ground.prepare()
        player.run(progress)
    except RunFailed as error:
        failure = error
    except KeyboardInterrupt:
        failure = RunFailed(f"interrupted at {human_duration(player.now)}")
    try:
        ground.clean_up()
    except RunFailed as error:
        notes.add(FidelityNote("cluster", "objects of the run may be left in the cluster"), example=str(error))
    except KeyboardInterrupt:
        failure = RunFailed(f"interrupted twice, so the cluster was not cleared: {ground.manual_cleanup}")
    if player.lag > _LATE_FROM:
        note = FidelityNote("submission", "jobs were submitted after their time: the machine or the cluster was busy")
        notes.add(note, example=f"by up to {human_duration(player.lag)}")
    return failure
