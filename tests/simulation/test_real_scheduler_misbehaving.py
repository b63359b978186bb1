"""Schedulers that misbehave: every run ends, reports why, and keeps its outputs."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

import batkube
from batkube import InputError, RunFailed
from conftest import Simulate

JOB = {"id": "0", "subtime": 0, "res": 1, "profile": "ten"}
PROFILES = {"ten": {"type": "delay", "delay": 10}}


def _jobs(count: int) -> list[dict[str, object]]:
    return [{**JOB, "id": str(number)} for number in range(count)]


def _manifest(folder: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / "manifest.json").read_text())
    return content


def _notes(run: batkube.Run) -> list[str]:
    return [note["message"] for note in json.loads((run.path / "fidelity.json").read_text())]


def test_a_scheduler_killed_during_the_run_leaves_its_last_lines_and_all_outputs(
    simulate: Simulate, faulty_scheduler: str, tmp_path: Path
) -> None:
    with pytest.raises(RunFailed, match=r"(?s)was killed by signal 9.*about to be killed") as failed:
        simulate(_jobs(3), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "killed"})
    assert "scheduler/log.txt" in str(failed.value)
    out = tmp_path / "out"
    assert _manifest(out)["result"] == "failed"
    assert {path.name for path in out.iterdir()} >= {"jobs.csv", "schedule.csv", "pods.csv", "journal.jsonl"}
    assert '"event":"bind"' in (out / "journal.jsonl").read_text()


def test_the_watchdog_stops_a_scheduler_that_is_never_idle(simulate: Simulate, faulty_scheduler: str) -> None:
    with pytest.raises(RunFailed, match="has not become idle for 2 s of real time"):
        simulate(_jobs(1), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "spins"}, watchdog=2)


def test_a_run_ends_when_its_patience_with_an_idle_scheduler_is_over(simulate: Simulate, faulty_scheduler: str) -> None:
    with pytest.raises(RunFailed, match=r"left 3 of 3 jobs .*: w0!0, w0!1, w0!2; .*for 1 min") as failed:
        simulate(_jobs(3), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "idles"}, patience="1m")
    assert "nothing more was due" in str(failed.value)


def test_pods_bound_to_a_node_that_does_not_exist_fail(simulate: Simulate, faulty_scheduler: str) -> None:
    run = simulate(_jobs(2), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "nowhere"})
    assert list(run.jobs["final_state"]) == ["COMPLETED_FAILED"] * 2
    assert "bound a pod to a node that does not exist" in _notes(run)
    assert "node nowhere does not exist" in (run.path / "pods.csv").read_text()


def test_pods_bound_to_a_full_node_are_rejected_by_its_kubelet(simulate: Simulate, faulty_scheduler: str) -> None:
    run = simulate(_jobs(3), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "crowds"})
    states = sorted(run.jobs["final_state"])
    assert states == ["COMPLETED_FAILED", "COMPLETED_FAILED", "COMPLETED_SUCCESSFULLY"]
    assert any("without room" in note for note in _notes(run))


def test_a_pod_can_be_bound_only_once(simulate: Simulate, faulty_scheduler: str) -> None:
    run = simulate(_jobs(1), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "twice"})
    log = (run.path / "scheduler" / "log.txt").read_text()
    assert re.findall(r"gave (\d+)", log) == ["201", "409"]
    assert list(run.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"]


def test_a_scheduler_that_exits_at_once_is_quoted(simulate: Simulate, faulty_scheduler: str) -> None:
    with pytest.raises(RunFailed, match=r"(?s)ended with exit code 3.*cannot go on"):
        simulate(_jobs(1), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "quits"})


def test_a_scheduler_that_rejects_its_arguments_is_quoted(simulate: Simulate, faulty_scheduler: str) -> None:
    with pytest.raises(RunFailed, match=r"(?s)ended with exit code 2.*not defined: -wy"):
        simulate(_jobs(1), PROFILES, scheduler=faulty_scheduler, scheduler_args={"wy": "idles"})


def test_a_program_on_the_real_clock_is_detected(simulate: Simulate, tmp_path: Path) -> None:
    program = _script(tmp_path, "exec sleep 60")
    with pytest.raises(RunFailed, match=r"does not read the virtual clock; .*batkube schedulers build --module"):
        simulate(_jobs(1), PROFILES, scheduler=program)


def test_a_program_that_never_reads_the_clock_is_detected_when_it_exits(simulate: Simulate, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="ended with exit code 0 and never read the virtual clock"):
        simulate(_jobs(1), PROFILES, scheduler=_script(tmp_path, "exit 0"))


def test_a_file_that_is_not_executable_is_an_input_error(simulate: Simulate, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a program")
    with pytest.raises(InputError, match="cannot be started: Permission denied"):
        simulate(_jobs(1), PROFILES, scheduler=str(path))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("after_s", [0, 70], ids=["at its start", "ten seconds into the run"])
@pytest.mark.parametrize("clock", ["python:", "preload:python3 "])
def test_the_end_of_an_attached_program_ends_the_run(
    clock: str, after_s: int, simulate: Simulate, faulty_scheduler: str, tmp_path: Path
) -> None:
    """The idleness of programs not written in Go is read from the kernel, and a dead process also looks asleep."""
    program = tmp_path / "controller.py"
    program.write_text(f"import sys, time\ntime.sleep({after_s})\nsys.exit('nothing left to control')\n")
    keys = {"scheduler_args": {"way": "idles"}, "patience": "1h"}

    with pytest.raises(RunFailed, match=r"(?s)controller.py ended with exit code 1;.*nothing left to control"):
        simulate(_jobs(1), PROFILES, scheduler=faulty_scheduler, attach=f"{clock}{program}", **keys)

    assert _manifest(tmp_path / "out")["end_s"] == max(after_s - 60, -60)


def test_the_end_of_an_attached_go_program_ends_the_run(simulate: Simulate, faulty_scheduler: str) -> None:
    with pytest.raises(RunFailed, match=r"(?s)ended with exit code 3; its last lines, of attached-1-.*cannot go on"):
        simulate(
            _jobs(1),
            PROFILES,
            scheduler=faulty_scheduler,
            scheduler_args={"way": "idles"},
            attach=f"{faulty_scheduler} --way=quits",
        )


def test_the_end_of_a_companion_ends_the_run(simulate: Simulate, faulty_scheduler: str, tmp_path: Path) -> None:
    catalogue = tmp_path / "mine.yaml"
    catalogue.write_text(
        "mine: {about: mine, scheduler-name: mine, clock: preload, command: [sleep, '1000'], companions: [helper]}\n"
        "helper: {about: helps, clock: preload, command: [sh, '-c', 'echo out of memory; kill -9 $$']}\n"
    )
    with pytest.raises(RunFailed, match=r"(?s)helper was killed by signal 9; .*of helper/log.txt:\s+out of memory"):
        simulate(_jobs(1), PROFILES, scheduler="mine", catalogue=catalogue)


def _script(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_uncounted_bytes_of_a_program_are_noted_as_not_repeatable(simulate: Simulate, faulty_scheduler: str) -> None:
    run = simulate(_jobs(1), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "copies"})

    assert "binding gave 201" in (run.path / "scheduler" / "log.txt").read_text()
    assert [note for note in _notes(run) if "uncounted bytes" in note]


def test_repeatable_misbehaviour_has_no_note_on_uncounted_bytes(simulate: Simulate, faulty_scheduler: str) -> None:
    run = simulate(_jobs(1), PROFILES, scheduler=faulty_scheduler, scheduler_args={"way": "twice"})

    assert not [note for note in _notes(run) if "uncounted bytes" in note]
