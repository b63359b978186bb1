"""Usage traces: their processes, and the hosts on which these run.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from pathlib import Path

from tests.batsim.simulator.simulations import (
    EitherBatsim,
)


def test_all_traces_of_a_job_must_have_as_many_processes_as_the_first(batsim: EitherBatsim, tmp_path: Path) -> None:
    for name, ranks in (("one", 1), ("two", 2)):
        files = [f"{name}.{rank}" for rank in range(ranks)]
        for rank, file in enumerate(files):
            (tmp_path / file).write_text(f"{rank} m_usage 1 1e9\n")
        (tmp_path / name).write_text("".join(f"{file}\n" for file in files))
    traces = {name: {"type": "usage_trace", "trace": name} for name in ("one", "two")}

    batsim([{"res": 2, "profile": "seq"}], {**traces, "seq": {"type": "composed", "seq": ["one", "two"]}})

    assert "it should use 2 MPI ranks but the ranking states that there are 1 ranks" in batsim.failure


def test_the_processes_of_a_trace_run_on_the_hosts_of_the_jobs_mapping(batsim: EitherBatsim, tmp_path: Path) -> None:
    """Both run on the second host, which has one core: 2 s instead of 1 s."""
    for rank in range(2):
        (tmp_path / f"{rank}.txt").write_text(f"{rank} m_usage 1 1e9\n")
    (tmp_path / "trace").write_text("0.txt\n1.txt\n")
    job = {"res": 2, "profile": "t", "smpi_ranks_to_hosts_mapping": [1, 1]}

    batsim([job], {"t": {"type": "usage_trace", "trace": "trace"}})

    assert batsim.rows[0]["execution_time"] == "2.000000"
