"""The first different decision of two runs."""

from __future__ import annotations

import json
from pathlib import Path

import batkube
from batkube.outputs.playback.playback import Playback
from batkube.page.divergence import first_divergence


def playback_of(folder: Path, policy: str, jobs: list[tuple[float, int, int]]) -> Playback:
    """Run jobs (submission, machines, seconds) on four machines, and read the run back."""
    profiles = {str(length): {"type": "delay", "delay": length} for _, _, length in jobs}
    entries = [
        {"id": str(number), "subtime": at, "res": size, "walltime": length + 10, "profile": str(length)}
        for number, (at, size, length) in enumerate(jobs)
    ]
    name = f"{policy}-{len(jobs)}"
    (folder / f"{name}.json").write_text(json.dumps({"nb_res": 4, "jobs": entries, "profiles": profiles}))
    batkube.run(
        workload=folder / f"{name}.json",
        platform="4x1",
        scheduler=f"policy:{policy}",
        out=folder / name,
        progress=False,
    )
    return Playback.read(folder / name)


def test_equal_runs_have_none(tmp_path: Path) -> None:
    jobs = [(0, 3, 90), (1, 4, 90)]
    (tmp_path / "again").mkdir()
    assert first_divergence(playback_of(tmp_path, "easy", jobs), playback_of(tmp_path / "again", "easy", jobs)) is None


def test_the_first_backfilled_job_is_the_first_difference(tmp_path: Path) -> None:
    jobs = [(0, 3, 90), (1, 4, 90), (2.5, 1, 30)]
    fcfs, easy = playback_of(tmp_path, "fcfs", jobs), playback_of(tmp_path, "easy", jobs)

    assert first_divergence(fcfs, easy) == {
        "time": 2_500_000,
        "decisions": ["binds nothing else at this instant", "binds w0-2 to node-3"],
    }


def test_a_run_that_has_more_decisions_differs_from_its_beginning(tmp_path: Path) -> None:
    short, long = (playback_of(tmp_path, "fcfs", [(at, 4, 1) for at in range(0, 10 * count, 10)]) for count in (1, 2))

    divergence = first_divergence(long, short)
    assert divergence is not None
    assert divergence["time"] == 10_000_000
    assert divergence["decisions"][0].startswith("binds w0-1-0 to node-0, w0-1-1 to node-1")
    assert divergence["decisions"][1] == "binds nothing else at this instant"
