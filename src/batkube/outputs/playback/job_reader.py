"""Reads the jobs of a run: the journal has each attempt of a workload's job, jobs.csv has how jobs ended."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from batkube.kernel.instants import Duration, Instant
from batkube.outputs.measures.run_data.run_files import RunFiles
from batkube.outputs.measures.run_data.text_table import read_table
from batkube.outputs.playback.cells import Cells, at_resolution
from batkube.outputs.playback.model import Execution, JournalEntry, RecordedJob

_REQUIRED = ("job_id", "workload_name", "submission_time", "starting_time", "finish_time", "final_state")


@dataclass(slots=True)
class _Attempts:
    """The executions of a job so far, while the journal is read."""

    ended: list[Execution] = field(default_factory=list)
    queued: Instant | None = None
    started: Instant | None = None

    def close(self, at: Instant | None) -> None:
        """End the current execution at an instant, or leave it open at the end of the run."""
        if self.queued is not None:
            self.ended.append(Execution(self.queued, self.started, at))
        self.queued = self.started = None


def read_jobs(files: RunFiles, entries: Iterable[JournalEntry]) -> tuple[RecordedJob, ...]:
    """Return the jobs, in order of submission; those of one instant in the order of the journal, then of jobs.csv."""
    table = read_table(files.jobs_path)
    table.require(_REQUIRED, "use the output folder of a run")
    executions = _executions_in_journal(entries)
    outcomes: dict[str, RecordedJob] = {}
    for job in _outcomes(Cells(table)):
        outcomes[job.key] = job
        executions.setdefault(job.key, job.executions)
    ordered = sorted(executions.items(), key=lambda item: item[1][0].queued)
    return tuple(
        msgspec.structs.replace(outcomes.get(key) or _unfinished(key), number=number, executions=attempts)
        for number, (key, attempts) in enumerate(ordered)
    )


def _outcomes(cells: Cells) -> Iterator[RecordedJob]:
    """Yield the job of each row of jobs.csv, with its last execution."""
    times = (cells.present_instants("submission_time"), cells.instants("starting_time"), cells.instants("finish_time"))
    executions = itertools.starmap(Execution, zip(*times, strict=True))
    texts = (cells.texts(column) for column in ("job_id", "workload_name", "final_state"))
    sizes, walltimes = cells.counts("requested_number_of_resources"), cells.instants("requested_time")
    more = (cells.texts(column) for column in ("user", "scheduler", "allocated_resources"))
    columns = zip(executions, *texts, sizes, walltimes, cells.counts("priority"), *more, strict=True)
    for execution, name, workload, state, size, walltime, priority, user, scheduler, machines in columns:
        yield RecordedJob(
            0,
            f"{workload}!{name}",
            name,
            workload,
            (execution,),
            state,
            size,
            None if walltime is None or walltime < 0 else Duration(walltime),
            user,
            priority,
            scheduler,
            machines,
        )


def _unfinished(key: str) -> RecordedJob:
    workload, _, name = key.partition("!")
    return RecordedJob(0, key, name, workload, ())


def _executions_in_journal(entries: Iterable[JournalEntry]) -> dict[str, tuple[Execution, ...]]:
    """Return the executions of each job whose submission is in the journal."""
    attempts: dict[str, _Attempts] = {}
    for entry in entries:
        key = entry.fields.get("job")
        if not isinstance(key, str) or entry.event not in ("submit", "resubmit", "start", "finish", "reject", "refuse"):
            continue
        at = at_resolution(entry.at)
        if entry.event == "submit" or key in attempts:
            _record(attempts.setdefault(key, _Attempts()), entry.event, at)
    for job in attempts.values():
        job.close(None)
    return {key: tuple(job.ended) for key, job in attempts.items() if job.ended}


def _record(job: _Attempts, event: str, at: Instant) -> None:
    if event in ("submit", "resubmit"):
        job.close(at)
        job.queued = at
    elif event == "start":
        job.started = at
    else:
        job.close(at)
