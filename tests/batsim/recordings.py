"""Recorded runs of the real Batsim 4.2.1: their commands, messages, output files and schedulers."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import click
import typer

from batkube.batsim.simulator import run
from batkube.cli.commands.batsim import batsim

#: Real times and the version, which are not compared.
_NOT_COMPARED = ("scheduling_time", "simulation_time", "batsim_version")
#: Columns with energies, which have a relative tolerance; all other numbers are times or counts.
_ENERGIES = ("consumed_energy", "consumed_joules", "energy", "epower", "wattmin")


class Recording:
    """A recorded run."""

    def __init__(self, shared: Path, name: str) -> None:
        self.folder = shared / "batsim-runs"
        self._run = self.folder / "runs" / name
        self.command = (self._run / "cmdline.txt").read_text().strip()

    @property
    def arguments(self) -> list[str]:
        """The arguments of Batsim; the recording lacks the quotes of a configuration."""
        text = self.command.rpartition(";")[2].strip()
        return shlex.split(re.sub(r"(--sched-cfg) (\{.*\})", r"\1 '\2'", text))[1:]

    @property
    def policy(self) -> str:
        """The policy of the scheduler."""
        match = re.search(r"--policy (\w+)", self.command)
        return match[1] if match else "Fcfs"

    @property
    def messages(self) -> list[str]:
        """The messages of Batsim; none without a scheduler."""
        path = self._run / "messages.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line["raw"] for line in map(json.loads, lines) if line["dir"] == "batsim->sched"]

    def table(self, name: str) -> list[list[str]]:
        """Return the cells of an output file; none if it is empty or missing."""
        path = self._run / f"out_{name}.csv"
        return read_table(path) if path.exists() else []

    def scheduler(self) -> RecordedScheduler | ReplayingScheduler:
        """Return a new instance of the recorded scheduler, or one that repeats its replies if it is not available."""
        if "pybatsim" in self.command:
            lines = map(json.loads, (self._run / "messages.jsonl").read_text().splitlines())
            return ReplayingScheduler([line["raw"] for line in lines if line["dir"] != "batsim->sched"])
        return RecordedScheduler(getattr(_module(self.folder / "sched.py"), self.policy)())


class RecordedScheduler:
    """The scheduler of the recordings, without a socket."""

    def __init__(self, policy: Any) -> None:  # noqa: ANN401 - a class without types
        self._policy = policy
        self.messages: list[str] = []

    def request(self, text: str) -> bytes:
        """Return the reply to a message."""
        self.messages.append(text)
        reply, _ = self._policy.handle(json.loads(text))
        return json.dumps(reply).encode()


class ReplayingScheduler:
    """Repeats the replies of a scheduler."""

    def __init__(self, replies: Sequence[str]) -> None:
        self._replies = iter(replies)
        self.messages: list[str] = []

    def request(self, text: str) -> bytes:
        """Return the next reply."""
        self.messages.append(text)
        return next(self._replies).encode()


def _module(path: Path) -> ModuleType:
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location("recorded_sched", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    return sys.modules[path.stem]


def arguments_of(options: Sequence[str]) -> run.SimulatorArguments:
    """Return the arguments that our command line makes of Batsim's options."""
    parsed: list[run.SimulatorArguments] = []
    app = typer.Typer()
    app.command()(batsim)
    original = run.run_batsim
    run.run_batsim = lambda arguments, listener=None, scheduler=None: parsed.append(arguments)
    try:
        typer.main.get_command(app).main(["-q", *options], standalone_mode=False)
    finally:
        run.run_batsim = original
    if not parsed:
        raise click.UsageError("nothing is simulated")
    return parsed[0]


def read_table(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def comparable(message: str) -> object:
    """Return the content of a message, without the paths of the machine on which it was recorded."""
    content = json.loads(message)
    for event in content["events"]:
        if event["type"] == "SIMULATION_BEGINS":
            del event["data"]["workloads"]
    return content


class Tolerance(NamedTuple):
    """The allowed differences between numbers of two tables."""

    #: For energies: relative, and in joules.
    energy_share: float = 1e-6
    energy_j: float = 0.0
    #: For the mean power in a row of consumed_energy.csv: relative.
    power_share: float = 1e-6
    #: For dates, in seconds, and relative: consumed_energy.csv has six digits, however long the simulation.
    time_s: float = 1e-4
    time_share: float = 0.0


#: For recorded runs.
CLOSE = Tolerance()
#: For generated scenarios: some last for days, and some rows are means over a millisecond, with dates that differ by
#: nanoseconds.
ANY_SCENARIO = Tolerance(energy_j=2e-5, power_share=1e-4, time_share=1.1e-5)


def differences(
    ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]], tolerance: Tolerance = CLOSE
) -> Iterator[str]:
    """Yield the differences between two tables: numbers by more than `tolerance`, and all other texts."""
    if not theirs:
        return
    if len(ours) != len(theirs):
        yield f"{len(ours)} rows instead of {len(theirs)}"
    header = theirs[0]
    for number, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        for name, mine, other in zip(header, our, their, strict=True):
            if name not in _NOT_COMPARED and not _agree(name, mine, other, tolerance):
                yield f"row {number}, {name}: {mine!r} instead of {other!r}"


def _agree(name: str, mine: str, other: str, tolerance: Tolerance) -> bool:
    # Less than a nanosecond after the start, Batsim computes a mean power, and our time is still 0.
    if mine == other or (name == "epower" and mine == "NA"):
        return True
    try:
        ours, theirs = float(mine), float(other)
    except ValueError:
        return False
    if name == "epower":
        return math.isclose(ours, theirs, rel_tol=tolerance.power_share)
    if name in _ENERGIES:
        return math.isclose(ours, theirs, rel_tol=tolerance.energy_share, abs_tol=tolerance.energy_j)
    if name == "time":
        return math.isclose(ours, theirs, rel_tol=tolerance.time_share, abs_tol=tolerance.time_s)
    # The sum of the times of many machines has the sum of their errors.
    slack = 1e-2 if name.startswith("time_") else tolerance.time_s
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=slack)
