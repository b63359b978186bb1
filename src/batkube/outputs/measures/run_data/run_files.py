"""A run's output folder, read back.

A bare jobs.csv is enough, so that published Batsim results can be compared with ours; other files (manifest, pods) are
then empty. Files are read lazily, and pandas is imported lazily: `batkube run` must start without it.
"""

from __future__ import annotations

import json
import math
import shlex
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import Severity
from batkube.kernel.intervals import parse_intervals

if TYPE_CHECKING:
    import pandas as pd

_POD_TEXT_COLUMNS = ("pod", "job_id", "workload_name", "node", "machine", "phase", "last_reason")
#: Prefix of the columns that are counts.
COUNT_PREFIX = "nb_"
#: Final states of lost jobs, with their labels.
LOSS_STATES = {"COMPLETED_FAILED": "failed", "COMPLETED_KILLED": "killed", "REJECTED": "rejected"}

#: The tables that are read back, and so are checked.
TABLES = ("jobs.csv", "schedule.csv", "pods.csv", "nodes.csv", "machine_states.csv", "devices.csv")
_POD_NUMBER_COLUMNS = ("created", "scheduled", "started", "finished", "attempts")
#: Columns of pods.csv that earlier versions did not write.
_NEW_POD_COLUMNS = ("cpu", "memory", "gpus", "released")
_NODE_TEXT_COLUMNS = ("node", "other", "zone", "rack", "pool")
_NODE_NUMBER_COLUMNS = ("machine", "cpu", "memory", "pods", "gpus", "created", "removed")
_DEVICE_TEXT_COLUMNS = ("driver", "pool", "device", "claim", "pods")
_DEVICE_NUMBER_COLUMNS = ("allocated", "freed")


class RunFiles:
    """The files of one run. Times are in seconds of virtual time; job ids are always text."""

    #: The run's name in tables and charts; empty for its default name.
    label = ""

    def __init__(self, path: str | Path) -> None:
        #: The given path: a folder or a jobs.csv.
        self.path = Path(path)
        #: The run's jobs.csv.
        self.jobs_path = _find_jobs(self.path)
        name = self.jobs_path.name
        #: Prefix of the run's files: Batsim writes `out_jobs.csv`, `out_schedule.csv`…; we write no prefix.
        self._prefix = name.removesuffix("jobs.csv") if name.endswith("jobs.csv") else f"{self.jobs_path.stem}_"

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job, in the file's order, with the columns of `jobs_frame`."""
        from batkube.outputs.measures.run_data.jobs_frame import read_jobs

        return read_jobs(self.jobs_path)

    @cached_property
    def pods(self) -> pd.DataFrame:
        """One row per pod; no rows when the run wrote no pods.csv."""
        frame = self._frame("pods.csv", _POD_TEXT_COLUMNS, _POD_NUMBER_COLUMNS, _NEW_POD_COLUMNS)
        return frame.astype({"attempts": "Int64"})

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per node and period in which it existed; no rows when the run wrote no nodes.csv."""
        frame = self._frame("nodes.csv", _NODE_TEXT_COLUMNS, _NODE_NUMBER_COLUMNS)
        return frame.astype(dict.fromkeys(("machine", "pods", "gpus"), "Int64"))

    @cached_property
    def devices(self) -> pd.DataFrame:
        """One row per allocation of a device to a claim; no rows if there was none."""
        return self._frame("devices.csv", _DEVICE_TEXT_COLUMNS, _DEVICE_NUMBER_COLUMNS)

    def _frame(
        self, name: str, texts: tuple[str, ...], numbers: tuple[str, ...], optional_numbers: tuple[str, ...] = ()
    ) -> pd.DataFrame:
        """Return a file of the run as a frame; no rows if it was not written. It may lack `optional_numbers`."""
        import pandas as pd

        from batkube.outputs.measures.run_data.text_table import read_table

        path = self.file(name)
        if not path.is_file():
            return pd.DataFrame({column: [] for column in (*texts, *numbers)})
        table = read_table(path)
        table.require((*texts, *numbers), "use the output folder of a run")
        are_numbers = {*numbers, *optional_numbers}
        return pd.DataFrame(
            {column: table.numbers(column) if column in are_numbers else table.text(column) for column in table.columns}
        )

    @cached_property
    def schedule(self) -> pd.Series[Any]:
        """The one row of schedule.csv, counts as ints and other numbers as floats; empty when there is no such file."""
        import pandas as pd

        from batkube.outputs.measures.run_data.text_table import read_table

        path = self.beside("schedule.csv")
        if not path.is_file():
            return pd.Series(dtype=object)
        table = read_table(path)
        if len(table.lines) != 1:
            raise InputError(path, problem=f"has {len(table.lines)} rows; a schedule.csv has exactly one")
        values = {name: _number_or_text(cells[0]) for name, cells in table.columns.items()}
        counts = {
            name: int(value) for name, value in values.items() if name.startswith(COUNT_PREFIX) and _is_whole(value)
        }
        return pd.Series(values | counts, dtype=object)

    @cached_property
    def machine_states(self) -> pd.DataFrame:
        """How many machines were in each state, a row per change; no rows when there is no such file."""
        import pandas as pd

        from batkube.outputs.measures.run_data.text_table import read_table

        path = self.file("machine_states.csv")
        if not path.is_file():
            return pd.DataFrame({"time": [], "nb_idle": [], "nb_computing": []})
        table = read_table(path)
        frame = pd.DataFrame({name: table.numbers(name) for name in table.columns})
        return frame.astype({name: "int64" for name in frame if str(name).startswith(COUNT_PREFIX)})

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The content of manifest.json; an empty dict if there is none."""
        path = self.beside("manifest.json")
        if not path.is_file():
            return {}
        try:
            content = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(path, problem=f"cannot be read as JSON: {error}") from error
        if not isinstance(content, dict):
            raise InputError(path, problem="is not a JSON object")
        return content

    @cached_property
    def notes(self) -> list[dict[str, Any]]:
        """The fidelity notes, violations first; none when there is no fidelity.json."""
        path = self.beside("fidelity.json")
        try:
            notes = json.loads(path.read_bytes()) if path.is_file() else []
        except (OSError, ValueError) as error:
            raise InputError(path, problem=f"cannot be read as JSON: {error}") from error
        if not isinstance(notes, list) or not all(isinstance(note, dict) for note in notes):
            raise InputError(path, problem="is not a list of fidelity notes")
        return sorted(notes, key=lambda note: note.get("severity") != Severity.VIOLATION)

    @property
    def violations(self) -> int:
        """How often the scheduler violated a rule that every cluster enforces: if so, the schedule is impossible."""
        return sum(int(note.get("count") or 0) for note in self.notes if note.get("severity") == Severity.VIOLATION)

    @property
    def violation_remark(self) -> str:
        """Warning if the scheduler violated a rule that every cluster enforces; empty otherwise."""
        times = "once" if self.violations == 1 else f"{self.violations:,} times"
        remark = f"violated rules of every cluster {times}: its schedule is impossible"
        return remark if self.violations else ""

    @property
    def failure_remark(self) -> str:
        """Warning if the run failed, so that its results are incomplete; empty otherwise."""
        if self.manifest.get("result") != "failed":
            return ""
        total = self.manifest.get("jobs")
        if not isinstance(total, int):
            return "failed: its results are incomplete"
        return f"failed: {total - len(self.jobs):,} of its {total:,} jobs have no outcome"

    @property
    def change_remark(self) -> str:
        """Warning if a table has another size than the run wrote, since it was cut or extended; empty otherwise."""
        files = self.manifest.get("files")
        tables = {name: entry for name, entry in files.items() if name in TABLES} if isinstance(files, dict) else {}
        changed = [name for name, entry in tables.items() if _size(self.beside(name)) != entry.get("bytes")]
        return f"has files that were changed after the run: {', '.join(changed)}" if changed else ""

    @property
    def loss_remark(self) -> str:
        """Warning if jobs failed or were killed or rejected, which no mean shows; empty otherwise.

        Jobs that reached their walltime do not count: a trace has them, whatever the scheduler.
        """
        counts = self.jobs["final_state"].value_counts()
        lost = [(int(counts.get(state, 0)), label) for state, label in LOSS_STATES.items()]
        losses = ", ".join(f"{count:,} {label}" for count, label in lost if count)
        ran = int((self.jobs["starting_time"].notna() & self.jobs["finish_time"].notna()).sum())
        total = len(self.jobs)
        return losses and f"lost jobs: {losses} of {total:,}; means are of the {ran:,} that started and ended"

    @cached_property
    def machines(self) -> list[dict[str, Any]]:
        """The machines as the manifest lists them; empty when it does not."""
        platform = self.manifest.get("platform") or {}
        return list(platform.get("machines") or [])

    @cached_property
    def presence_s(self) -> dict[int, list[tuple[float, float]]]:
        """Periods in which nodes existed, of machines that did not always have one; infinite if until the end."""
        return {
            number: [(float(begin), math.inf if end is None else float(end)) for begin, end in machine["present_s"]]
            for number, machine in enumerate(self.machines)
            if "present_s" in machine
        }

    @cached_property
    def machine_count_recorded(self) -> int | None:
        """The number of machines in the manifest, or otherwise in schedule.csv; None if neither has it."""
        return len(self.machines) or int(self.schedule.get("nb_computing_machines") or 0) or None

    @cached_property
    def machine_count(self) -> int:
        """The number of machines: the recorded one, or at least the highest id in use plus one."""
        allocations = self.jobs["allocated_resources"].unique()
        highest = max((parse_intervals(text).bit_length() for text in allocations), default=0)
        return max(self.machine_count_recorded or 0, highest)

    @property
    def machine_names(self) -> list[str]:
        """A name for each machine; its id if it has no name."""
        names = [str(machine.get("name", number)) for number, machine in enumerate(self.machines)]
        return names + [str(number) for number in range(len(names), self.machine_count)]

    @property
    def shares_machines(self) -> bool:
        """True if jobs share machines by their cpu requests, and the machines' cpu is known."""
        model = self.manifest.get("resources")
        by_requests = model == "requests" if model else bool(self.jobs["cpu"].notna().any())
        return by_requests and len(self.cpu_milli) == self.machine_count

    @property
    def cpu_milli(self) -> list[int]:
        """Each machine's cpu in millicores; empty unless the manifest has all of them."""
        amounts = [int(machine["cpu_milli"]) for machine in self.machines if machine.get("cpu_milli")]
        return amounts if len(amounts) == len(self.machines) else []

    @property
    def scheduler(self) -> str:
        """The scheduler or policy, as the manifest names it; empty if unknown."""
        return str(self.manifest.get("scheduler") or self.manifest.get("policy") or "")

    @property
    def name(self) -> str:
        """Name of the run: its label, else its folder's name, or its file's without `_jobs.csv`."""
        if self.label:
            return self.label
        name = self.path.resolve().name
        return name.removesuffix(".csv").removesuffix("_jobs") if self.path.is_file() else name

    def beside(self, name: str) -> Path:
        """Return the path of this run's file called `name`, whether it exists or not."""
        return self.jobs_path.with_name(self._prefix + name)

    def left_out(self, name: str) -> bool:
        """Return whether the scenario's `outputs` left out the file called `name`."""
        return name in (self.manifest.get("left_out") or ())

    def file(self, name: str) -> Path:
        """Return the path as `beside` does. Raises InputError if the file was left out and its data is needed."""
        path = self.beside(name)
        if self.left_out(name) and not path.is_file():
            raise InputError(
                path.parent,
                problem=f"{name} was left out of this run by `outputs`",
                remedy=f"batkube rerun {shlex.quote(str(path.parent))} --outputs all --out NEW, and use NEW instead",
            )
        return path


def _find_jobs(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise InputError(path, problem="does not exist", remedy="use a run's output folder or a jobs.csv")
    if (path / "jobs.csv").is_file():
        return path / "jobs.csv"
    candidates = sorted(path.glob("*_jobs.csv"))
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = ", ".join(candidate.name for candidate in candidates[:3])
        raise InputError(
            path, problem=f"contains the jobs of {len(candidates)} runs ({names}…)", remedy="name one of these files"
        )
    if (path / "experiment.json").is_file():
        first = next(iter(sorted(path.glob("runs/*/jobs.csv"))), path / "runs" / "NAME" / "jobs.csv").parent
        problem = "is the folder of an experiment, not of a run"
        raise InputError(path, problem=problem, remedy=f"name one of its runs: {first}")
    raise InputError(
        path, problem="is not a run's output folder: it contains no jobs.csv", remedy="use the --out of a run"
    )


def _is_whole(value: float | str | None) -> TypeGuard[float]:
    return isinstance(value, float) and value.is_integer()


def _number_or_text(text: str) -> float | str | None:
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _size(path: Path) -> int | None:
    """Return the size of a file; None if it is missing."""
    try:
        return path.stat().st_size
    except OSError:
        return None
