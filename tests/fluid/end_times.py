"""The end times of parallel tasks on a platform, according to our model and to SimGrid."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from batkube.execution.profiles.fluid_platform import FluidPlatform
from batkube.fluid.flow import Flow
from batkube.kernel.instants import Instant
from batkube.platforms.simgrid.network import parse_network

SOURCE = Path(__file__).with_name("ptasks.cpp")


class Arrival(NamedTuple):
    """A parallel task and its start."""

    name: str
    start_s: float
    hosts: Sequence[str]
    flops: Sequence[float]
    sent_bytes: Sequence[float]

    def line(self) -> str:
        """Return the line of input for ptasks.cpp."""
        words = [self.name, repr(self.start_s), str(len(self.hosts)), *self.hosts, *map(repr, self.flops)]
        return " ".join([*words, str(len(self.sent_bytes)), *map(repr, self.sent_bytes)])


def our_end_times(platform: Path, arrivals: Sequence[Arrival]) -> dict[str, float]:
    """Return when each task ends, in seconds, according to our model."""
    flow = Flow()
    ours = FluidPlatform(parse_network(platform, platform.read_bytes()), flow)
    pending = sorted(
        ((Instant(round(one.start_s * 1e9)), ours.new_task(one.name, *one[2:])) for one in arrivals),
        key=lambda arrival: arrival[0],
    )
    ends: dict[str, float] = {}
    while True:
        dates = [date for date in (flow.due(), pending[0][0] if pending else None) if date is not None]
        if not dates:
            return ends
        now = min(dates)
        ends.update((task.name, now / 1e9) for task in flow.advance(now))
        while pending and pending[0][0] == now:
            flow.begin(pending.pop(0)[1], now)
        flow.update_rates(now)


def compile_oracle(folder: Path) -> Path | None:
    """Compile the program that runs SimGrid, or return None if g++ or SimGrid is missing."""
    if shutil.which("g++") is None or not Path("/usr/include/simgrid/s4u.hpp").exists():
        return None
    program = folder / "ptasks"
    subprocess.run(["g++", "-O1", "-std=c++17", "-o", program, SOURCE, "-lsimgrid"], check=True)
    return program


def simgrid_end_times(oracle: Path, platform: Path, arrivals: Sequence[Arrival]) -> dict[str, float]:
    """Return when each task ends, in seconds, according to SimGrid's L07 model."""
    text = "\n".join(one.line() for one in arrivals)
    run = subprocess.run(
        [oracle, platform, "--log=root.thresh:critical"], input=text, capture_output=True, text=True, check=True
    )
    return {name: float(end) for name, end in map(str.split, run.stdout.splitlines())}
