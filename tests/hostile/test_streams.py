"""Standard streams that are closed, full, or read by somebody who has seen enough: no result is lost to them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.commands import EXPERIMENT, RUN, TIMEOUT_S, answer, command, study

#: Says something at every decision, as people do who look for a mistake.
TALKATIVE = """
from batkube.policies.interface import Policy, Start
class Talkative(Policy):
    def decide(self, view):
        for job in view.queue:
            print("hello", job.name, flush=True)
            yield Start(job, view.free.fit(job))
"""
TALKING = (*RUN, "--scheduler", "policy:./mine.py:Talkative")


def completed(folder: Path) -> bool:
    return json.loads((folder / "out" / "manifest.json").read_text())["result"] == "completed"


def closing(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize("command", [RUN, TALKING], ids=["run", "a policy that prints"])
def test_a_full_standard_output_costs_no_result_and_is_told(tmp_path: Path, command: tuple[str, ...]) -> None:
    study(tmp_path, policy_file=TALKATIVE)

    with Path("/dev/full").open("w") as full:
        result = answer(tmp_path, *command, stdout=full)

    assert result.returncode == 1
    assert result.stderr == "failed: standard output cannot be written: No space left on device\n"
    assert completed(tmp_path)


@pytest.mark.parametrize("command", [("policies",), ("--help",), ("--version",), ("schedulers", "list")])
def test_what_cannot_be_printed_is_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        result = answer(tmp_path, *command, stdout=full)

    assert result.returncode == 1
    assert result.stderr == "failed: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", [RUN, TALKING, ("policies",)], ids=["run", "a policy that prints", "policies"])
def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path, command: tuple[str, ...]) -> None:
    study(tmp_path, policy_file=TALKATIVE)
    reader, writer = os.pipe()
    os.close(reader)

    result = answer(tmp_path, *command, stdout=writer)
    os.close(writer)

    assert (result.returncode, result.stderr) == (0, "")
    assert command == ("policies",) or completed(tmp_path)


def test_a_slow_reader_of_a_pipe_that_does_not_block_gets_it_all(tmp_path: Path) -> None:
    study(tmp_path, policy_file=f"{TALKATIVE}\nfor _ in range(200):\n    print('x' * 1000)\n")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    with subprocess.Popen(command(*TALKING), cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        with os.fdopen(reader) as stream:
            lines = stream.readlines()
        _, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, err) == (0, "")
    assert sum(line == "x" * 1000 + "\n" for line in lines) == 200


@pytest.mark.parametrize("descriptors", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_closed_streams_are_nobody_s_files(tmp_path: Path, descriptors: tuple[int, ...]) -> None:
    study(tmp_path, policy_file=TALKATIVE)

    result = answer(tmp_path, *TALKING, prepare=lambda: closing(descriptors))

    assert result.returncode == 0
    assert completed(tmp_path)
    outputs = [path for path in (tmp_path / "out").iterdir() if b"hello" in path.read_bytes()]
    assert outputs == []


def test_a_full_standard_error_costs_an_experiment_nothing(tmp_path: Path) -> None:
    study(tmp_path, "policy:fcfs", "policy:easy")

    with Path("/dev/full").open("w") as full:
        result = answer(tmp_path, *EXPERIMENT, stderr=full)

    assert result.returncode == 0
    assert result.stdout.startswith("2 of 2 runs done")


def test_an_error_that_cannot_be_told_still_has_its_exit_code(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = answer(tmp_path, *RUN, stderr=full)

    assert result.returncode == 2
