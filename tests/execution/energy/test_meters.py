"""Energy of machines and jobs, compared with the real Batsim: all joules agree within 1e-6 relative."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.execution.profiles.recorded_runs import RecordedRun, Replay

from batkube.execution.energy.meters import EnergyMeters
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.intervals import members, parse_intervals


class MeteredReplay(Replay):
    """A recorded run with energy meters, which are read and switched as by Batsim."""

    def __init__(self, run: RecordedRun) -> None:
        super().__init__(run)
        # `--mmax` leaves out the machines behind the first ones; their power is not counted.
        count = 1 + max(number for row in run.jobs for number in members(parse_intervals(row["allocated_resources"])))
        states = run.rows("out_pstate_changes.csv")
        count = max(count, max(members(parse_intervals(states[0]["machine_id"])), default=0) + 1)
        self.machines = self.machines[:count]
        self.meters = EnergyMeters(self.platform, self.machines)
        self.work.meters = self.meters
        self.joules: dict[str, float] = {}
        #: Rows of consumed_energy.csv: time, joules, event, minimum watts.
        self.readings: list[tuple[float, float, str, float]] = []
        for row in states[1:]:
            self.agenda.book(Instant(seconds(row["time"])), Rank.TIMELINE, lambda now, row=row: self.switch(row, now))

    def read(self, what: str, now: Instant) -> None:
        self.readings.append((now / 1e9, self.meters.total_joules(now), what, self.meters.lowest_watts))

    def switch(self, row: Mapping[str, str], now: Instant) -> None:
        if int(row["new_pstate"]) >= 0:
            for number in members(parse_intervals(row["machine_id"])):
                self.meters.set_pstate(self.machines[number], int(row["new_pstate"]), now)
            self.work.request_settle(now)
        self.read("p", now)

    def begin(self, name: str, row: Mapping[str, str], now: Instant) -> None:
        self.joules[name] = -self.meters.joules(self.hosts(row), now)
        self.read("s", now)

    def end(self, name: str, code: int, now: Instant) -> None:
        super().end(name, code, now)
        row = next(row for row in self.run.jobs if row["job_id"] == name)
        self.joules[name] += self.meters.joules(self.hosts(row), now)
        self.read("e", now)


@pytest.mark.parametrize(
    "name", ["energy_fcfs", "energy_pstate", "up_energy_load0", "up_energy_load100", "up_usage_trace"]
)
def test_energy_is_that_of_batsim(shared_data: Path, name: str) -> None:
    run = RecordedRun(shared_data / "batsim-runs", name)
    replay = MeteredReplay(run)

    replay.play()

    expected = {row["job_id"]: float(row["consumed_energy"]) for row in run.jobs}
    assert replay.joules == pytest.approx(expected, rel=1e-6)
    rows = run.rows("out_consumed_energy.csv")
    assert [(what, watts) for _, _, what, watts in replay.readings] == [
        (row["event_type"], pytest.approx(float(row["wattmin"]))) for row in rows
    ]
    assert [at for at, *_ in replay.readings] == pytest.approx([float(row["time"]) for row in rows], abs=1e-4)
    # Dates in files have six decimals, so a value may be off by 1e-6 s of all machines' power.
    slack = 1e-6 * replay.meters.total_joules(replay.now) / (replay.now / 1e9)
    joules = [joules for _, joules, *_ in replay.readings]
    assert joules == pytest.approx([float(row["energy"]) for row in rows], rel=1e-6, abs=2 * slack)
