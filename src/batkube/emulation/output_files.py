"""Write the output files of an emulated run, in the format of a simulated run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import msgspec

from batkube.cluster.jobs.outcomes import DELETED_PHASE, ONE_ATTEMPT, JobPodsRecord, Outcome
from batkube.cluster.mapping import NAMESPACE
from batkube.cluster.nodes.resource_usage import ResourceUsage
from batkube.cluster.pods.accessors import TERMINAL_PHASES
from batkube.cluster.store import Key
from batkube.emulation.job_tracker import EmulatedJob, EmulatedPod, JobTracker
from batkube.emulation.preflight import ClusterNodes
from batkube.emulation.settings import Emulation
from batkube.kernel.errors import RunFailed
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import START, Instant, format_seconds
from batkube.kernel.journal import Journal
from batkube.kernel.quantities import CPU
from batkube.kernel.stopwatch import CpuStopwatch, peak_memory_bytes
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.files.manifest import fingerprint, write_json
from batkube.outputs.writers.jobs_csv import ExtraColumns, write_jobs
from batkube.outputs.writers.nodes_csv import write_nodes
from batkube.outputs.writers.schedule_csv import summary_of, write_schedule
from batkube.outputs.writers.streaming_csv import MachineStatesWriter, PodsWriter
from batkube.platforms.model import Machine
from batkube.version import __version__
from batkube.workloads.model import Job, Requests

#: Extra columns of jobs.csv: the steps of a pod's start.
STEP_COLUMNS = ("scheduled", "pulling", "pulled", "created")


@dataclass(frozen=True, slots=True)
class RunContext:
    """The metadata of a run."""

    emulation: Emulation
    nodes: ClusterNodes
    #: The URL of the API server, and its version.
    server: str
    version: str
    #: The value of the run's label.
    run: str
    namespace: str
    command: Sequence[str]
    stopwatch: CpuStopwatch


class OutputWriter:
    """Writes the output files from the tracked jobs."""

    def __init__(self, tracker: JobTracker, context: RunContext, notes: FidelityNotes) -> None:
        self._tracker = tracker
        self._context = context
        self._notes = notes
        self._emulated_jobs = {job.planned.job.key: job for job in tracker.jobs}
        self._number_of = {name: number for number, name in enumerate(context.nodes.names)}
        # Nodes that were added during the run follow.
        for job in tracker.jobs:
            for pod in job.pods.values():
                if pod.node:
                    self._number_of.setdefault(pod.node, len(self._number_of))
        self._machines = [
            Machine(
                number, name, context.nodes.allocatable[number] if number < len(context.nodes.allocatable) else {CPU: 0}
            )
            for name, number in self._number_of.items()
        ]
        #: The start of each pod.
        self._starts = {pod.name: self._start_of(pod) for job in tracker.jobs for pod in job.pods.values()}

    def write(self, folder: OutputFolder, failure: RunFailed | None) -> list[Outcome]:
        """Write all files, and return the outcomes of the jobs."""
        if failure is not None:
            folder.protect_completed_run()
        outcomes = [self._outcome(job) for job in self._tracker.jobs if job.has_ended]
        with folder.file("journal.jsonl").open("wb") as sink:
            journal = Journal(sink)
            self._tracker.write_journal(journal)
            digest = journal.digest
        with folder.file("pods.csv").open("w", encoding="utf-8", newline="") as file:
            self._write_pods(file)
        with folder.file("machine_states.csv").open("w", encoding="utf-8", newline="") as file:
            states = self._write_states(file)
        summary = summary_of(
            outcomes,
            states,
            self._usage(),
            machine_count=len(self._machines),
            whole_machines=False,
            job_count=len(self._tracker.jobs),
            version=__version__,
        )
        write_jobs(folder.file("jobs.csv"), outcomes, ExtraColumns(STEP_COLUMNS, self._steps))
        write_nodes(folder.file("nodes.csv"), self._machines)
        self._note_gangs()
        self._note_rejections()
        summary["nb_violations"] = self._notes.violations
        write_schedule(folder.file("schedule.csv"), summary)
        write_json(folder.file("fidelity.json"), self._notes.rows())
        folder.seal(self._manifest(digest, failure))
        return outcomes

    def _outcome(self, job: EmulatedJob) -> Outcome:
        """Return the outcome of a job, with the time of its request as submission and the requests of its pods."""
        planned = job.planned
        submit = planned.job.submit if job.submitted is None else job.submitted
        pods = job.counted_pods()
        starts = [self._starts[pod.name] for pod in pods]
        bound = [pod.bound for pod in pods if pod.bound is not None]
        ends = [pod.finished for pod in pods if pod.finished is not None]
        started = [start for start in starts if start is not None]
        has_run = len(started) == len(pods) > 0 and len(ends) == len(pods)
        machines = 0
        for pod in pods:
            machines |= 1 << self._number_of[pod.node] if pod.node else 0
        return Outcome(
            job=msgspec.structs.replace(planned.job, submit=submit, requests=planned.requests),
            state=job.state,
            scheduled=max(bound, default=None),
            started=max(started) if has_run else None,
            finished=max(ends) if has_run else None,
            machines=machines,
            past=ONE_ATTEMPT._replace(evictions=sum(pod.was_lost for pod in job.pods.values())),
        )

    def _start_of(self, pod: EmulatedPod) -> Instant | None:
        """Return the start of a pod, or its binding if it ended before it was observed running."""
        if pod.started is None and pod.phase in ("Succeeded", "Failed") and pod.started_at and pod.bound is not None:
            note = FidelityNote(
                "start", "pods ended before they were observed running; they count as started when bound"
            )
            self._notes.add(note, example=pod.name)
            return pod.bound
        return pod.started

    def _steps(self, job: Job) -> Sequence[str]:
        """Return when the last pod of a job reached each step; blank if that was not observed for all pods."""
        emulated_job = self._emulated_jobs[job.key]
        cells = []
        for column in STEP_COLUMNS:
            times = [pod.step_time(column) for pod in emulated_job.counted_pods()]
            reached = [time for time in times if time is not None]
            cells.append(format_seconds(max(reached)) if reached and len(reached) == len(times) else "")
        return cells

    def _write_pods(self, file: TextIO) -> None:
        pods = [pod for job in self._tracker.jobs for pod in job.pods.values() if pod.finished is not None]
        by_key = {Key(f"{NAMESPACE}/{pod.name}"): pod for pod in pods}
        names = [machine.name for machine in self._machines]
        writer = PodsWriter(file, names, lambda key: (by_key[key].failed_attempts, by_key[key].reason))
        for key, pod in sorted(by_key.items(), key=lambda entry: entry[1].finished or START):
            writer.write(
                JobPodsRecord(
                    job=pod.planned.job,
                    keys=[key],
                    created=pod.first_seen or START,
                    machine_ids=[self._number_of[pod.node] if pod.node else None],
                    scheduled=[pod.bound],
                    started=[self._starts[pod.name]],
                    finished=pod.finished or START,
                    phase=pod.phase if pod.phase in TERMINAL_PHASES else DELETED_PHASE,
                    reason=pod.reason if pod.phase != "Succeeded" else "",
                )
            )

    def _write_states(self, file: TextIO) -> MachineStatesWriter:
        """Write the number of busy nodes over time."""
        writer = MachineStatesWriter(file, len(self._machines))
        writer.record_states(0, START)
        counts: dict[str, int] = {}
        busy = 0
        for at, change, node, _ in self._occupancy_changes():
            before = counts.get(node, 0)
            counts[node] = before + change
            busy += (before == 0 and change > 0) - (counts[node] == 0)
            writer.record_states(busy, at)
        writer.flush()
        return writer

    def _occupancy_changes(self) -> list[tuple[Instant, int, str, Requests]]:
        """Return each binding (+1) and end (-1) of a pod in order of time, with its node and requests."""
        changes = []
        for job in self._tracker.jobs:
            for pod in job.pods.values():
                if pod.bound is not None:
                    changes.append((pod.bound, 1, pod.node, job.planned.requests))
                    if pod.finished is not None:
                        changes.append((pod.finished, -1, pod.node, job.planned.requests))
        return sorted(changes)

    def _usage(self) -> ResourceUsage:
        """Return the resource usage. Nodes may seem overcommitted, because ends of pods are observed late."""
        usage = ResourceUsage()
        for machine in self._machines:
            usage.offer(machine.capacity)
        usage.is_overcommitted = True
        usage.record(START)
        for at, change, _, requests in self._occupancy_changes():
            usage.hold(requests, change)
            usage.record(at)
        return usage

    def _note_gangs(self) -> None:
        gangs = [job for job in self._tracker.jobs if job.planned.job.size > 1]
        if gangs:
            note = FidelityNote("jobs", "the pods of a multi-pod job did not wait for each other before they started")
            self._notes.add(note, example=f"job {gangs[0].planned.job.key}", count=len(gangs))

    def _note_rejections(self) -> None:
        rejected = self._tracker.rejected_jobs
        if rejected:
            note = FidelityNote("submission", "jobs were rejected by the cluster")
            first = rejected[0]
            self._notes.add(note, example=f"job {first.planned.job.key}: {first.rejection}", count=len(rejected))

    def _manifest(self, digest: str, failure: RunFailed | None) -> dict[str, object]:
        context = self._context
        files = [*context.emulation.workloads, Path(context.emulation.platform or "")]
        return {
            "batkube": __version__,
            "command": list(context.command),
            "emulation": context.emulation.describe(),
            "scheduler": f"{context.emulation.scheduler_name} of a real cluster",
            "cluster": {
                "server": context.server,
                "version": context.version,
                "clock_speed": context.nodes.speed,
                "namespace": context.namespace,
                "run": context.run,
            },
            "resources": "requests",
            "seed": None,
            "inputs": [fingerprint(path) for path in files if path.is_file()],
            "platform": {
                "machines": [
                    {"name": machine.name, "cpu_milli": machine.cpu_milli, "capacity": machine.capacity}
                    for machine in self._machines
                ]
            },
            "jobs": len(self._tracker.jobs),
            "result": "completed" if failure is None else "failed",
            "failure": None if failure is None else str(failure),
            "digest": digest,
            "programs": [],
            "real": {
                "run_s": round(context.stopwatch.real_s, 3),
                "cpu_s": round(context.stopwatch.cpu_s, 3),
                "peak_memory_bytes": peak_memory_bytes(),
                "python": sys.version.split()[0],
                "cores": os.cpu_count(),
            },
        }
