"""Run one experiment from its file to its tables: the Python interface."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batkube.experiments.description.columns import STATE
from batkube.experiments.description.experiment_file import read_experiment, with_time_limit
from batkube.experiments.plan.code_digest import code_digest
from batkube.experiments.plan.grid_selection import GridSelection
from batkube.experiments.plan.policy_objects import PolicyObjects
from batkube.experiments.plan.runs import Plan, make_plan
from batkube.experiments.results.result_files import read_description, read_results
from batkube.experiments.results.table_files import write_tables
from batkube.experiments.running.executors import PROCESSES, PythonExecutor, RunExecutor, open_executors
from batkube.experiments.running.folder import ExperimentFolder, RunState, run_folder
from batkube.experiments.running.orchestrator import ExperimentOrchestrator, Progress, ProgressListener
from batkube.kernel.errors import InputError
from batkube.kernel.stopwatch import Stopwatch
from batkube.outputs.files.parquet import preload_parquet
from batkube.outputs.measures.metric_columns import MAIN_COLUMNS
from batkube.outputs.results import Results
from batkube.programs.program import Builder
from batkube.schedulers.installed import installed_program
from batkube.simulation.preparation.named_code import reject_foreign_code, trust_all

if TYPE_CHECKING:
    import pandas as pd

#: Minimum interval between two writes of the tables, in real seconds, and as a multiple of the time that a write takes.
_INTERVAL_S = 60.0
_WRITE_TIME_FACTOR = 50
#: Maximum number of rows, the first and the last ones, that a notebook shows of an experiment.
_MAX_ROWS = 60


class ExperimentResults:
    """The folder of an experiment: its table of results, and the results of each run."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @cached_property
    def results(self) -> pd.DataFrame:
        """A row per finished run; see `read_results`."""
        return read_results(self.folder)

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """The entry of each finished run in experiment.json."""
        return list(read_description(self.folder)["runs"])

    @property
    def failures(self) -> dict[str, str]:
        """Reasons of failed runs, by their names."""
        return {run["run"]: run["failure"] for run in self.runs if run["state"] == RunState.FAILED}

    def run(self, name: str) -> Results:
        """Return the results of the run of that name."""
        return Results(run_folder(self.folder, name))

    def report(self, out: str | Path | None = None) -> Path:
        """Write the experiment's report, one HTML file, and return its path: by default in the experiment's folder."""
        from batkube.experiments.report.document import write_report

        return write_report(self.folder, None if out is None else Path(out))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.runs):,} runs in {self.folder}>"

    def _repr_html_(self) -> str:
        """Return the experiment for a notebook: failures, then the main numbers of each run."""
        failures = "".join(
            f"<p><b>failed:</b> {escape(f'{run}: {reason}')}</p>" for run, reason in self.failures.items()
        )
        axes = [axis["name"] for axis in read_description(self.folder)["axes"]]
        columns = [name for name in (*axes, STATE, *MAIN_COLUMNS) if name in self.results]
        table = self.results[[name for name in columns if not self.results[name].isna().all()]]
        return f"<div>{failures}{table.to_html(index=False, max_rows=_MAX_ROWS)}</div>"


def experiment(
    experiment: str | Path | Mapping[str, object],
    out: str | Path,
    *,
    executor: Executor | str | None = None,
    jobs: int | None = None,
    limit: int | None = None,
    only: GridSelection | None = None,
    time_limit: str | float | None = None,
    force: bool = False,
    retry_failed: bool = False,
    keep_finished: bool = False,
    trust: bool = False,
    builder: Builder | None = None,
) -> ExperimentResults:
    """Execute the unfinished runs of an experiment, and return its results.

    `experiment` is a file, or a mapping with the same content, whose paths are relative to the current folder, and in
    which a scheduler may be a subclass of `batkube.policies.Policy` or an instance of one.

    * `only` selects a part of the grid by its labels, and `limit` the first runs of that part.
    * `time_limit` is the maximum real time of each run: 60 (seconds) or "10m".
    * `executor` is a Python executor or a value of `--executor`; by default, runs are executed in `jobs` processes.
    * `trust` allows code named in a file from elsewhere (docs/explanation/security.md).
    * `builder` builds schedulers; by default as on the command line.

    Failed runs do not raise an exception: see `failures` of the result.
    """
    policies = PolicyObjects()
    content = (
        {key: policies.replace_by_names(value) for key, value in experiment.items()}
        if isinstance(experiment, Mapping)
        else None
    )
    description = read_experiment(Path(str(experiment)) if content is None else content)
    description = with_time_limit(description, time_limit)
    # A mapping is code of the caller.
    confirm = trust_all if trust or content is not None else reject_foreign_code
    plan = policies.attach_to(
        make_plan(description, builder or installed_program, limit, only, policies.check, confirm)
    )
    with ExitStack() as stack:
        if isinstance(executor, Executor):
            runs: RunExecutor = PythonExecutor(executor)
        else:
            runs = stack.enter_context(open_executors(executor or PROCESSES, plan, jobs)).runs
        run_experiment(
            plan,
            ExperimentFolder(Path(out)),
            runs,
            force=force,
            retry_failed=retry_failed,
            keep_finished=keep_finished,
        )
    return ExperimentResults(out)


def run_experiment(
    plan: Plan,
    folder: ExperimentFolder,
    executor: RunExecutor,
    *,
    force: bool = False,
    retry_failed: bool = False,
    keep_finished: bool = False,
    command: Sequence[str] = (),
    listener: ProgressListener = lambda progress: None,
    on_damage: Callable[[str], None] = lambda message: print(message, file=sys.stderr, flush=True),
) -> None:
    """Execute the unfinished runs of `plan` in `folder`, and write the tables, also when interrupted.

    Finished runs are checked first; `on_damage` is called with a message for each damaged run, which is then repeated.
    """
    with folder.locked(), _disk_errors_as_input_errors(folder.path):
        if force:
            folder.remove_all_runs()
        for damage in folder.move_damaged_aside(run.name for run in plan.runs):
            on_damage(damage)
        if retry_failed:
            ends = {run.name: folder.finished_run(run.name) for run in plan.runs}
            folder.remove_runs(name for name, end in ends.items() if end is not None and end.state is RunState.FAILED)
        write = partial(write_tables, plan, folder, command, _code_digests(folder, keep_finished))
        write(parquet=False)
        table_writer = _PeriodicTableWriter(lambda: write(parquet=False), listener)
        try:
            ExperimentOrchestrator(plan.runs, folder, executor, table_writer.on_progress).run(command)
        finally:
            write()


class _PeriodicTableWriter:
    """Writes the tables periodically during the runs, so that the results of a long experiment can be inspected."""

    def __init__(self, write: Callable[[], None], listener: ProgressListener) -> None:
        self._write = write
        self._listener = listener
        self._stopwatch = Stopwatch()
        self._next_s = _INTERVAL_S

    def on_progress(self, progress: Progress) -> None:
        """Forward `progress`, and write the tables if it is time."""
        self._listener(progress)
        if progress.running:
            preload_parquet()
        start_s = self._stopwatch.real_s
        if start_s >= self._next_s and progress.remaining:
            self._write()
            duration_s = self._stopwatch.real_s - start_s
            self._next_s = self._stopwatch.real_s + max(_INTERVAL_S, _WRITE_TIME_FACTOR * duration_s)


def _code_digests(folder: ExperimentFolder, keep_finished: bool) -> list[str]:
    """Return the digests of the code of all runs. Raises InputError if they differ without `keep_finished`."""
    codes = [] if folder.is_empty else folder.code_digests
    current = code_digest()
    if codes and codes[-1] != current and not keep_finished:
        raise InputError(
            folder.path,
            problem="contains runs of another version of Batkube's code, whose results may differ",
            remedy="choose another --out, or --force to repeat all runs, or --keep-finished to run the rest",
        )
    return [*(code for code in codes if code != current), current]


@contextmanager
def _disk_errors_as_input_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        remedy = "free disk space, then resume with the same command"
        raise InputError(path, problem=problem, remedy=remedy) from error
