"""One run: from a scenario to its output folder, and the Python entry point."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from batkube.cluster.mapping import ResourceModel
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Instant
from batkube.kernel.journal import Journal
from batkube.kernel.stopwatch import Stopwatch, peak_memory_bytes
from batkube.outputs.folder import MANIFEST, OutputFolder
from batkube.outputs.jobs_csv import write_jobs
from batkube.outputs.manifest import fingerprint, write_json
from batkube.outputs.results import Results
from batkube.outputs.schedule_csv import summary_of, write_schedule
from batkube.simulation.assembly import Inputs, Simulation, assemble, read_inputs
from batkube.simulation.loop import run_until_idle
from batkube.simulation.scenario import Scenario, make_scenario
from batkube.version import __version__

ProgressListener = Callable[[int, int, Instant], None]
"""Called now and then with: jobs ended, jobs in all, virtual time reached."""


class Run(Results):
    """A finished run: its output folder as pandas frames and pictures."""

    def __init__(self, folder: Path, *, temporary: bool = False) -> None:
        """A `temporary` folder is removed when the object goes."""
        super().__init__(folder)
        if temporary:
            weakref.finalize(self, shutil.rmtree, folder.parent, ignore_errors=True)


def run(
    *,
    workload: str | Path | Sequence[str | Path],
    platform: str | Path,
    scheduler: str = "policy:fcfs",
    out: str | Path | None = None,
    force: bool = False,
    seed: int = 0,
    resources: str = "auto",
    latencies: str | Path | None = None,
    on_eviction: str = "resubmit",
    scheduler_args: Mapping[str, object] | None = None,
) -> Run:
    """Run one scenario and return its results.

    Raises InputError when an input is unusable and RunFailed when jobs are left without an outcome. Without `out` the
    folder is temporary and lives as long as the returned object.
    """
    given = [workload] if isinstance(workload, str | Path) else list(workload)
    scenario = make_scenario(
        {
            "workload": [str(one) for one in given],
            "platform": str(platform),
            "scheduler": scheduler,
            "seed": seed,
            "resources": resources,
            "latencies": latencies,
            "on-eviction": on_eviction,
            "scheduler-args": scheduler_args,
        },
        "batkube.run",
    )
    folder = Path(tempfile.mkdtemp(prefix="batkube-")) / "run" if out is None else Path(out)
    try:
        execute(scenario, folder, force=force)
    except BaseException:
        if out is None:
            shutil.rmtree(folder.parent, ignore_errors=True)
        raise
    return Run(folder, temporary=out is None)


def execute(
    scenario: Scenario,
    out: Path,
    *,
    force: bool = False,
    command: Sequence[str] = (),
    progress: ProgressListener | None = None,
) -> Results:
    """Run `scenario` into the folder `out`.

    A run that fails still leaves what it computed, and then raises RunFailed.
    """
    folder = OutputFolder(out, force=force)
    stopwatch = Stopwatch()
    inputs = read_inputs(scenario)
    failure: RunFailed | None = None
    with folder.writing():
        with (
            folder.file("journal.jsonl").open("wb") as journal_file,
            folder.file("pods.csv").open("w", encoding="utf-8", newline="") as pods_file,
            folder.file("machine_states.csv").open("w", encoding="utf-8", newline="") as states_file,
        ):
            journal = Journal(journal_file)
            simulation = assemble(inputs, journal, pods_file, states_file)
            try:
                _complete(simulation, inputs, progress)
            except RunFailed as error:
                failure = error
            except KeyboardInterrupt:
                failure = RunFailed("interrupted")
            simulation.machine_states.flush()
            digest = journal.digest
        _write_results(folder, inputs, simulation, digest, failure, command, stopwatch)
    if failure is not None:
        raise RunFailed(f"{failure}\n  what was computed until then is in {out}") from failure
    return Results(out)


def _complete(simulation: Simulation, inputs: Inputs, progress: ProgressListener | None) -> None:
    """Run to the end, and see that every job has an outcome."""
    total = inputs.job_count
    outcomes = simulation.outcomes

    def report(now: Instant) -> None:
        if progress is not None:
            progress(len(outcomes), total, now)

    run_until_idle(simulation.agenda, simulation.clock, report)
    report(simulation.clock.now)
    left = total - len(outcomes)
    if left:
        ended = {outcome.job.key for outcome in outcomes}
        names = [job.key for workload in inputs.workloads for job in workload.jobs if job.key not in ended]
        examples = ", ".join(names[:5]) + (", …" if left > 5 else "")
        raise RunFailed(
            f"{inputs.scenario.scheduler} left {left} of {total} jobs without an outcome: {examples}; "
            "nothing more was due, and it did not start them"
        )


def _write_results(
    folder: OutputFolder,
    inputs: Inputs,
    simulation: Simulation,
    digest: str,
    failure: RunFailed | None,
    command: Sequence[str],
    stopwatch: Stopwatch,
) -> None:
    machines = inputs.platform.machines
    write_jobs(folder.file("jobs.csv"), simulation.outcomes)
    summary = summary_of(
        simulation.outcomes,
        machines=machines,
        whole_machines=inputs.model is ResourceModel.MACHINES,
        busy_machine_ns=simulation.machine_states.busy_machine_ns,
        version=__version__,
    )
    write_schedule(folder.file("schedule.csv"), summary)
    write_json(folder.file("fidelity.json"), simulation.notes.rows())
    write_json(folder.file(MANIFEST), _manifest(inputs, simulation, digest, failure, command, stopwatch))


def _manifest(
    inputs: Inputs,
    simulation: Simulation,
    digest: str,
    failure: RunFailed | None,
    command: Sequence[str],
    stopwatch: Stopwatch,
) -> dict[str, object]:
    scenario = inputs.scenario
    files = [*scenario.workloads, Path(scenario.platform), *([scenario.latencies] if scenario.latencies else [])]
    return {
        "batkube": __version__,
        "command": list(command),
        "scenario": scenario.describe(),
        "scheduler": scenario.scheduler,
        "resources": inputs.model.value,
        "seed": scenario.seed,
        "latencies": inputs.latencies.describe(),
        "inputs": [fingerprint(path) for path in files if path.is_file()],
        "platform": {
            "machines": [
                {"name": machine.name, "cpu_milli": machine.cpu_milli, "capacity": machine.capacity}
                for machine in inputs.platform.machines
            ]
        },
        "jobs": inputs.job_count,
        "result": "completed" if failure is None else "failed",
        "failure": None if failure is None else str(failure),
        "digest": digest,
        "real": {
            "run_s": round(stopwatch.real_s, 3),
            "cpu_s": round(stopwatch.cpu_s, 3),
            "peak_memory_bytes": peak_memory_bytes(),
            "python": sys.version.split()[0],
            "cores": os.cpu_count(),
        },
    }
