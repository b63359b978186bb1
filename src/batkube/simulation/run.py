"""Execute one run, from a scenario to its output folder; `run` is the Python entry point."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import traceback
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

from batkube.batsim.state.errors import BatsimAbort
from batkube.cluster.jobs.outcomes import Outcome
from batkube.cluster.jobs.submission_forms import ANNOTATION_JOB
from batkube.cluster.mapping import LABEL_JOB, POD
from batkube.cluster.object_meta import annotations_of, labels_of
from batkube.files.temporary import temporary_file_errors
from batkube.kernel.error_causes import expected_error
from batkube.kernel.errors import Bug, InputError, RunFailed, as_bug
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import START, Instant, human_duration
from batkube.kernel.journal import Journal
from batkube.kernel.stopwatch import CpuStopwatch
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.results import Results
from batkube.policies.interface import Policy
from batkube.policies.runtime.guard import line_in_policy
from batkube.programs.program import Builder
from batkube.scenarios.keys import KEYS, make_scenario
from batkube.scenarios.scenario import POLICY_PREFIX, Scenario
from batkube.schedulers.catalogue import Catalogue
from batkube.simulation.assembly import Simulation, assemble
from batkube.simulation.preparation.inputs import Inputs, PolicyObject, read_inputs
from batkube.simulation.preparation.timeline import note_pending_events
from batkube.simulation.progress import ProgressListener, is_interactive, progress_display
from batkube.simulation.run_record import RunRecord
from batkube.simulation.time_limit import TimeLimitReached, time_limit
from batkube.timing.run_clock import PausableClock
from batkube.workloads.model import Job

log = logging.getLogger(__name__)

_UNFINISHED_AT_END = FidelityNote(
    "until", "jobs or pods had not ended, or not started, at the end of the run; jobs.csv has no row for them"
)

_NEVER_FITTED = FidelityNote(
    "workload", "jobs request more than the platform has and never ran: no program created nodes for them"
)

WorkloadSource = str | Path | Mapping[str, object]
"""A workload's file, or how it is made: `{"generate": "lublin", "jobs": 500}` (docs/reference/scenario.md)."""


class Run(Results):
    """A finished run: its output folder as pandas frames and pictures."""

    def __init__(self, folder: Path, *, temporary: bool = False) -> None:
        """A `temporary` folder is removed together with the object."""
        super().__init__(folder)
        if temporary:
            weakref.finalize(self, shutil.rmtree, folder.parent, ignore_errors=True)


def run(
    *,
    workload: WorkloadSource | Sequence[WorkloadSource],
    platform: str | Path,
    scheduler: str | Sequence[str] | PolicyObject = "policy:fcfs",
    out: str | Path | None = None,
    force: bool = False,
    pack: bool = False,
    seed: int = 0,
    resources: str = "auto",
    latencies: str | Path | None = None,
    on_eviction: str = "resubmit",
    scheduler_args: Mapping[str, object] | None = None,
    progress: bool | None = None,
    **more: object,
) -> Run:
    """Run one scenario and return its results.

    `scheduler` is a value of `batkube run --scheduler`, a subclass of `batkube.policies.Policy`, or an instance of one,
    which is copied. A program of the catalogue is built on first use and cached. Raises InputError for invalid inputs,
    RunFailed if jobs are left without an outcome, and Bug for an error in Batkube itself.

    Without `out`, the folder is temporary and removed together with the returned object. `progress` shows the progress
    of the run on standard error; by default on a terminal and in a notebook. `more` are further keys of a scenario
    file, with underscores: `decision_cost="measured"`.
    """
    workloads = [workload] if isinstance(workload, str | Path | Mapping) else list(workload)
    own_policy, scheduler = _policy_object(scheduler)
    scenario = make_scenario(
        {
            "workload": [one if isinstance(one, Mapping) else str(one) for one in workloads],
            "platform": str(platform),
            "scheduler": scheduler if isinstance(scheduler, str) else list(scheduler),
            "seed": seed,
            "resources": resources,
            "latencies": latencies,
            "on-eviction": on_eviction,
            "scheduler-args": scheduler_args,
            **_extra_keys(more),
        },
        "batkube.run",
    )
    folder = _temporary_folder() / "run" if out is None else Path(out)
    try:
        is_shown = is_interactive() if progress is None else progress
        with progress_display(quiet=not is_shown) as listener:
            execute(
                scenario,
                folder,
                force=force,
                pack=pack,
                builder=_build_with_output,
                own_policy=own_policy,
                progress=listener,
            )
    except BaseException:
        if out is None and not folder.exists():
            shutil.rmtree(folder.parent, ignore_errors=True)
        raise
    return Run(folder, temporary=out is None)


def _policy_object(scheduler: str | Sequence[str] | PolicyObject) -> tuple[PolicyObject | None, str | Sequence[str]]:
    """Return the policy if `scheduler` is an object, and the name of the scheduler in the scenario.

    Raises InputError.
    """
    if isinstance(scheduler, str | list | tuple):
        return None, scheduler
    kind = scheduler if isinstance(scheduler, type) else type(scheduler)
    if not issubclass(kind, Policy):
        problem = f"is {scheduler!r}, which is not a scheduler"
        raise InputError(
            "batkube.run",
            at="scheduler",
            problem=problem,
            remedy="use a text such as 'policy:easy', or a class derived from batkube.policies.Policy",
        )
    return cast(PolicyObject, scheduler), f"{POLICY_PREFIX}{kind.__module__}.{kind.__qualname__}"


def _temporary_folder() -> Path:
    with temporary_file_errors():
        return Path(tempfile.mkdtemp(prefix="batkube-"))


def _build_with_output(title: str, catalogue: Catalogue) -> Path:
    """Return a program by name, with progress output, because a build takes minutes."""
    from batkube.schedulers.installed import installed_program

    return installed_program(title, catalogue, lambda text: print(text, file=sys.stderr, flush=True))


def _extra_keys(more: Mapping[str, object]) -> dict[str, object]:
    """Return additional keyword arguments as keys of a scenario. Raises TypeError for an unknown one."""
    keys = {name.replace("_", "-"): value for name, value in more.items()}
    for key in keys:
        if key not in KEYS:
            raise TypeError(f"run() got an unexpected keyword argument {key!r}")
    return keys


def execute(
    scenario: Scenario,
    out: Path,
    *,
    force: bool = False,
    pack: bool = False,
    command: Sequence[str] = (),
    progress: ProgressListener | None = None,
    builder: Builder | None = None,
    own_policy: PolicyObject | None = None,
    on_assembled: Callable[[Simulation], None] | None = None,
    run_clock: PausableClock | None = None,
) -> RunRecord:
    """Run `scenario` into the folder `out` and return its record.

    With `pack`, the inputs are copied into the folder. `on_assembled` is called before time advances, and must not
    change the simulation; `run_clock` may delay it, which changes no result. A run that fails writes its results so
    far, and then raises RunFailed, or Bug for an internal error.
    """
    folder = OutputFolder(out, force=force)
    stopwatch = CpuStopwatch()
    inputs = read_inputs(scenario, builder, own_policy)
    machines = len(inputs.platform.machines)
    log.info("read %d jobs and %d objects for %d machines", inputs.job_count, len(inputs.objects), machines)
    log.info("jobs take %s; scheduler: %s", inputs.model.value, scenario.scheduler)

    def place(name: str) -> Path:
        # The journal is always written, because it determines the digest; it may go to /dev/null.
        return Path(os.devnull) if name in scenario.omitted_outputs else folder.file(name)

    with folder.writing():
        with (
            place("journal.jsonl").open("wb") as journal_file,
            place("pods.csv").open("w", encoding="utf-8", newline="") as pods_file,
            place("machine_states.csv").open("w", encoding="utf-8", newline="") as states_file,
            _open_reasons(scenario, folder) as reasons_file,
        ):
            journal = Journal(journal_file)
            reasons = Journal(reasons_file)
            simulation: Simulation | None = None
            failure: RunFailed | Bug | None = None
            try:
                with time_limit(scenario.time_limit):
                    simulation = assemble(inputs, journal, reasons, pods_file, states_file, folder.file("scheduler"))
                    if on_assembled is not None:
                        on_assembled(simulation)
                    _run_to_end(simulation, inputs, progress, run_clock)
            except (Exception, KeyboardInterrupt) as error:
                failure = _failure(error, inputs, simulation)
                _release_frames(error)
            assert simulation is not None
            simulation.machine_states.finish(simulation.world.clock.now)
            digest = journal.digest
            reasons.flush()
        record = RunRecord(inputs, simulation, digest, failure, command, stopwatch, pack)
        log.info("ended at virtual time %s, with digest %s", human_duration(simulation.world.clock.now), digest)
        failure = _write_outputs(record, folder)
    log.info("written to %s after %.2f s", folder.path, stopwatch.real_s)
    if failure is not None:
        raise _with_partial_results(failure, folder) from failure
    return record


def _with_partial_results(failure: RunFailed | Bug, folder: OutputFolder) -> RunFailed | Bug:
    """Return the failure, extended by where the partial results are."""
    text = f"what was computed until then is in {folder.path}"
    return as_bug(failure, text) if isinstance(failure, Bug) else RunFailed(f"{failure}\n  {text}")


def _write_outputs(record: RunRecord, folder: OutputFolder) -> RunFailed | Bug | None:
    """Write the outputs of a run. Return its failure, which may be a bug in writing them."""
    try:
        record.write(folder)
    except Exception as error:
        if expected_error(error) is not None:
            raise
        # A bug can leave behind what cannot be written; the first one is what has to be reported.
        bug = record.failure if isinstance(record.failure, Bug) else as_bug(error, "while outputs were written")
        record.write_bug(folder, bug)
        return bug
    return record.failure


def _open_reasons(scenario: Scenario, folder: OutputFolder) -> AbstractContextManager[BinaryIO | None]:
    """Return the open reasons.jsonl; None without --explain."""
    return folder.file("reasons.jsonl").open("wb") if scenario.explain else nullcontext()


def _release_frames(error: BaseException) -> None:
    """Release the local variables of the traceback: after running out of memory, writing outputs needs some."""
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__


def _failure(error: BaseException, inputs: Inputs, simulation: Simulation | None) -> RunFailed | Bug:
    """Return the failure of a run. Errors before its assembly are raised instead, because there are no results."""
    if simulation is None and not isinstance(error, TimeLimitReached):
        raise error
    if isinstance(error, RunFailed):
        return error
    instant_text = "before the first instant"
    if simulation is not None:
        instant_text = f"at {human_duration(simulation.world.clock.now)} of virtual time"
    if isinstance(error, Exception) and not isinstance(error, MemoryError):
        # All inputs have been read, so that none can be nested too deeply any more.
        if expected_error(error) is not None and not isinstance(error, RecursionError):
            raise error  # an input, or the machine: not what a run computes
        return as_bug(error, instant_text)
    reason = "out of memory" if isinstance(error, MemoryError) else str(error) or "interrupted"
    place = inputs.policy and line_in_policy(inputs.policy, error)  # finds an endless loop in a policy
    failure = RunFailed(f"{reason} {instant_text}{f', in {place}' if place else ''}")
    if simulation is None:
        raise failure from error
    return failure


def _run_to_end(
    simulation: Simulation, inputs: Inputs, progress: ProgressListener | None, run_clock: PausableClock | None
) -> None:
    """Run to the end, and check that every job has an outcome unless `until` was reached."""
    work, driver = simulation.completion, simulation.programs
    controlled = driver if run_clock is None else run_clock.control(driver, simulation.world)

    def report(now: Instant) -> None:
        if progress is not None:
            progress(*work.progress, max(now, START))  # programs come up before the run begins

    try:
        simulation.loop.run(controlled, work.is_done, report)
        simulation.peer_connection.finish()
    except BatsimAbort as error:
        raise RunFailed(f"{inputs.scenario.scheduler}: {error}{simulation.peer_connection.log_tail()}") from error
    finally:
        simulation.programs.stop()
        simulation.peer_connection.close()
        work.report_remaining_pods()
    if simulation.auditor is not None:
        simulation.auditor.finish(simulation.world.clock.now)
    if simulation.gangs is not None and simulation.gangs.deadlock is not None:
        remedy = "use a scheduler that starts the pods of a job together, or --on-deadlock wait"
        raise RunFailed(f"{simulation.gangs.deadlock}\n  remedy: {remedy}")
    simulation.rules.note_unused(simulation.world.notes)
    note_pending_events(inputs.timeline, simulation.world.notes, simulation.world.clock.now)
    unfinished = _unfinished(inputs, simulation.outcomes)
    if not unfinished:
        _check_no_pod_left(simulation)
    if waiting := sorted(set(inputs.too_large) & set(unfinished)):
        simulation.world.notes.add(_NEVER_FITTED, example=f"job {waiting[0]}", count=len(waiting))
    rest = [*unfinished, *work.unfinished()]
    if rest and work.is_time_up:
        simulation.world.notes.add(_UNFINISHED_AT_END, example=rest[0], count=len(rest))
    elif endless := work.endless_pods():
        raise RunFailed(
            f"pod {endless[0]} runs forever, so the run would not end\n  remedy: add --until, such as --until 1d"
        )
    elif rest:
        examples = ", ".join(rest[:5]) + (", …" if len(rest) > 5 else "")
        raise RunFailed(
            f"{inputs.scenario.scheduler} left {len(rest)} of {work.job_count} jobs without an outcome: {examples}; "
            f"nothing more was due, and it did not start them{_patience_text(inputs.scenario)}"
            f"{_unknown_kinds_hint(simulation.unknown_kinds)}"
        )


def _patience_text(scenario: Scenario) -> str:
    return f" for {human_duration(scenario.patience)} of virtual time" if scenario.has_external_scheduler else ""


def _unknown_kinds_hint(unknown_kinds: Sequence[str]) -> str:
    """Return the likely reason why programs did nothing: undefined custom kinds."""
    if not unknown_kinds:
        return ""
    kinds = ", ".join(unknown_kinds)
    return f"; programs requested {kinds}, which are not defined: see `definitions` in docs/reference/schedulers.md"


def _unfinished(inputs: Inputs, outcomes: Sequence[Outcome]) -> list[str]:
    """Return the jobs of the workloads without an outcome, and check that none has two."""
    # Usually all jobs have one; comparing lists of names takes a tenth of the memory of a set of keys.
    if _job_names(outcome.job for outcome in outcomes) == _job_names(inputs.jobs):
        return []
    done = {outcome.job.key for outcome in outcomes}
    if len(done) != len(outcomes):
        raise Bug(f"{len(outcomes)} outcomes were written for {len(done)} jobs")
    return [job.key for job in inputs.jobs if job.key not in done]


def _job_names(jobs: Iterable[Job]) -> dict[str, list[str]]:
    """Return the names of jobs by workload, in order."""
    names: dict[str, list[str]] = {}
    for job in jobs:
        names.setdefault(job.workload, []).append(job.name)
    return {workload: sorted(workload_jobs) for workload, workload_jobs in names.items()}


def _check_no_pod_left(simulation: Simulation) -> None:
    """Check that no pod of a job is left at the end."""
    pods = simulation.world.store.all(POD)
    rest = [key for key, pod in pods.items() if LABEL_JOB in labels_of(pod)]
    # Controllers delete the pods that they have created.
    rest = [key for key in rest if ANNOTATION_JOB not in annotations_of(pods[key])]
    if rest:
        raise Bug(f"all jobs have ended, and {len(rest)} pods are left: {rest[0]} …")
