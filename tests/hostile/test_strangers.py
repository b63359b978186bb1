"""Unauthorized connections to the API port of a run's program are rejected and noted, and do not change the run."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import batkube
from batkube.api.connections.polled import program_listener
from conftest import REPOSITORY, Simulate

STRANGERS = Path(__file__).with_name("strangers.py")
PROFILES = {"ten": {"type": "delay", "delay": 10, "cpu": "1"}}
JOBS = [{"id": str(number), "subtime": number // 3, "res": 1, "profile": "ten"} for number in range(12)]
RESULTS = ("jobs.csv", "pods.csv", "journal.jsonl", "machine_states.csv", "schedule.csv")


@contextlib.contextmanager
def _strangers(folder: Path, kinds: Sequence[str] = ()) -> Iterator[None]:
    knocking = subprocess.Popen([sys.executable, str(STRANGERS), str(folder), *kinds])
    try:
        yield
    finally:
        assert knocking.poll() is None, "the strangers gave up"
        knocking.kill()
        knocking.wait()


def _outputs(run: batkube.Run) -> list[bytes | str]:
    digest: str = json.loads((run.path / "manifest.json").read_text())["digest"]
    return [digest, *((run.path / name).read_bytes() for name in RESULTS)]


def _turned_away(run: batkube.Run) -> int:
    notes = json.loads((run.path / "fidelity.json").read_text())
    return sum(note["count"] for note in notes if "and were rejected" in note["message"])


@pytest.fixture(scope="module")
def undisturbed() -> list[list[bytes | str]]:
    """The outputs of the run without such connections, once computed."""
    return []


@pytest.mark.parametrize(
    "kinds",
    [
        ("half_requests",),
        ("whole_requests", "garbage", "short_words", "silence"),
        ("requests_with_the_secret",),
        ("floods",),
        ("as-nobody",),
    ],
    ids="-".join,
)
def test_unauthorized_connections_do_not_change_results_and_are_noted(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path, undisturbed: list[list[bytes | str]], kinds: Sequence[str]
) -> None:
    if "as-nobody" in kinds and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if not undisturbed:
        quiet = simulate(JOBS, PROFILES, scheduler=kube_scheduler, resources="requests", out=tmp_path / "quiet")
        undisturbed.append(_outputs(quiet))
        assert _turned_away(quiet) == 0
    with _strangers(tmp_path, kinds):
        run = simulate(JOBS, PROFILES, scheduler=kube_scheduler, resources="requests")

    assert _outputs(run) == undisturbed[0]
    assert _turned_away(run) > 0


def test_a_full_backlog_does_not_change_results(
    simulate: Simulate, faulty_scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(out: str) -> list[bytes | str]:
        way = {"way": "crowds"}
        return _outputs(
            simulate(JOBS[:1], PROFILES, scheduler=faulty_scheduler, scheduler_args=way, out=tmp_path / out)
        )

    expected = run("quiet")
    monkeypatch.setattr(program_listener, "_BACKLOG", 1)  # thousands wait like one, but arrive later
    with _strangers(tmp_path, ["silence", "floods"]):
        assert run("crowded") == expected


def test_unauthorized_connections_to_a_paced_run_are_rejected_and_noted(simulate: Simulate, tmp_path: Path) -> None:
    source = (REPOSITORY / "tests" / "pacing" / "plain_scheduler.py").read_text()
    program = tmp_path / "plain"
    program.write_text(f"#!{sys.executable} -SEu\n{source}")
    program.chmod(0o755)
    with _strangers(tmp_path):
        run = simulate(JOBS[:3], PROFILES, scheduler=str(program), time="paced:timeout=300ms,crash-timeout=1m")

    assert list(run.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"] * 3
    assert _turned_away(run) > 0


def test_connections_to_a_port_of_the_program_itself_are_noted(
    simulate: Simulate, faulty_scheduler: str, tmp_path: Path
) -> None:
    with _strangers(tmp_path, ["own-port", "whole_requests"]):
        run = simulate(JOBS[:1], PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "listens"})

    messages = [note["message"] for note in json.loads((run.path / "fidelity.json").read_text())]
    assert any("connected to a port of a program" in message for message in messages)
