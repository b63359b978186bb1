"""Recorded runs of the real Batsim 4.2.1: their commands, messages and tables, and the scheduler that took part."""

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

#: Real seconds, which nobody can repeat, and what a Batsim was built as.
_NOT_COMPARED = ("scheduling_time", "simulation_time", "batsim_version")
#: Sums of energy, which are compared by their relative difference; all other numbers are times or counts.
_ENERGIES = ("consumed_energy", "consumed_joules", "energy", "epower", "wattmin")


class Recording:
    """One recorded run."""

    def __init__(self, shared: Path, name: str) -> None:
        self.folder = shared / "batsim-runs"
        self._run = self.folder / "runs" / name
        self.command = (self._run / "cmdline.txt").read_text().strip()

    @property
    def arguments(self) -> list[str]:
        """What Batsim was called with; a configuration lost its quotes when it was written down."""
        text = self.command.rpartition(";")[2].strip()
        return shlex.split(re.sub(r"(--sched-cfg) (\{.*\})", r"\1 '\2'", text))[1:]

    @property
    def policy(self) -> str:
        """Which of its policies the scheduler followed."""
        match = re.search(r"--policy (\w+)", self.command)
        return match[1] if match else "Fcfs"

    @property
    def messages(self) -> list[str]:
        """What Batsim said; nothing without a scheduler."""
        path = self._run / "messages.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line["raw"] for line in map(json.loads, lines) if line["dir"] == "batsim->sched"]

    def table(self, name: str) -> list[list[str]]:
        """Return the cells of one of its files, and nothing for one that is empty or not there."""
        path = self._run / f"out_{name}.csv"
        return read_table(path) if path.exists() else []

    def scheduler(self) -> RecordedScheduler | Playback:
        """Return the scheduler that took part, new; of one that is not here, what it said."""
        if "pybatsim" in self.command:
            lines = map(json.loads, (self._run / "messages.jsonl").read_text().splitlines())
            return Playback([line["raw"] for line in lines if line["dir"] != "batsim->sched"])
        return RecordedScheduler(getattr(_module(self.folder / "sched.py"), self.policy)())


class RecordedScheduler:
    """The scheduler of the recordings, without a socket between it and us."""

    def __init__(self, policy: Any) -> None:  # noqa: ANN401 - a class of others, with no types
        self._policy = policy
        self.heard: list[str] = []

    def request(self, text: str) -> bytes:
        """Hand it a message, and return its reply."""
        self.heard.append(text)
        reply, _ = self._policy.handle(json.loads(text))
        return json.dumps(reply).encode()


class Playback:
    """Says again what a scheduler said."""

    def __init__(self, replies: Sequence[str]) -> None:
        self._replies = iter(replies)
        self.heard: list[str] = []

    def request(self, text: str) -> bytes:
        """Return the next reply."""
        self.heard.append(text)
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


def arguments_of(words: Sequence[str]) -> run.SimulatorArguments:
    """Return what our command line makes of the words of Batsim's."""
    caught: list[run.SimulatorArguments] = []
    app = typer.Typer()
    app.command()(batsim)
    original = run.run_batsim
    run.run_batsim = lambda arguments, listener=None, scheduler=None: caught.append(arguments)
    try:
        typer.main.get_command(app).main(["-q", *words], standalone_mode=False)
    finally:
        run.run_batsim = original
    if not caught:
        raise click.UsageError("nothing is simulated")
    return caught[0]


def read_table(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def comparable(message: str) -> object:
    """Return what a message says, without the paths of the machine it was said on."""
    content = json.loads(message)
    for event in content["events"]:
        if event["type"] == "SIMULATION_BEGINS":
            del event["data"]["workloads"]
    return content


class Tolerance(NamedTuple):
    """How far numbers of two tables may be apart."""

    #: Of energies: as a share, and in joules.
    energy_share: float = 1e-6
    energy_j: float = 0.0
    #: Of the mean power in a row of consumed_energy.csv.
    power_share: float = 1e-6
    #: Of dates, in seconds, and as a share: consumed_energy.csv writes six digits, however long the simulation.
    time_s: float = 1e-4
    time_share: float = 0.0


#: Recorded runs are as close as that.
CLOSE = Tolerance()
#: Of generated ones some last for days, and some rows are means over a millisecond, with dates off by nanoseconds.
ANY_SCENARIO = Tolerance(energy_j=2e-5, power_share=1e-4, time_share=1.1e-5)


def differences(
    ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]], tolerance: Tolerance = CLOSE
) -> Iterator[str]:
    """Yield where two tables differ: numbers by more than `tolerance`, texts at all."""
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
    # Less than a nanosecond after the start there is a mean power for Batsim, and no time yet for us.
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
    # The times of many machines add up to a sum with as many errors.
    slack = 1e-2 if name.startswith("time_") else tolerance.time_s
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=slack)
