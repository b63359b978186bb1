"""Standard streams that are closed, full, or pipes whose reader has exited: no result is lost."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.commands import EXPERIMENT, RUN, TIMEOUT_S, command, run_batkube, write_study

#: Prints a line at every decision.
PRINTING_POLICY = """
from batkube.policies.interface import Policy, Start
class Printing(Policy):
    def decide(self, view):
        for job in view.queue:
            print("hello", job.name, flush=True)
            yield Start(job, view.free.fit(job))
"""
PRINTING_RUN = (*RUN, "--scheduler", "policy:./mine.py:Printing")


def has_completed(folder: Path) -> bool:
    return json.loads((folder / "out" / "manifest.json").read_text())["result"] == "completed"


def close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize("command", [RUN, PRINTING_RUN], ids=["run", "a policy that prints"])
def test_a_run_with_full_standard_output_keeps_its_results_and_fails(tmp_path: Path, command: tuple[str, ...]) -> None:
    write_study(tmp_path, policy_file=PRINTING_POLICY)

    with Path("/dev/full").open("w") as full:
        result = run_batkube(tmp_path, *command, stdout=full)

    assert result.returncode == 1
    assert result.stderr == "failed: standard output cannot be written: No space left on device\n"
    assert has_completed(tmp_path)


@pytest.mark.parametrize("command", [("policies",), ("--help",), ("--version",), ("schedulers", "list")])
def test_a_full_standard_output_is_reported_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        result = run_batkube(tmp_path, *command, stdout=full)

    assert result.returncode == 1
    assert result.stderr == "failed: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", [RUN, PRINTING_RUN, ("policies",)], ids=["run", "a policy that prints", "policies"])
def test_a_pipe_whose_reader_has_exited_is_not_a_failure(tmp_path: Path, command: tuple[str, ...]) -> None:
    write_study(tmp_path, policy_file=PRINTING_POLICY)
    reader, writer = os.pipe()
    os.close(reader)

    result = run_batkube(tmp_path, *command, stdout=writer)
    os.close(writer)

    assert (result.returncode, result.stderr) == (0, "")
    assert command == ("policies",) or has_completed(tmp_path)


def test_a_slow_reader_of_a_non_blocking_pipe_gets_all_output(tmp_path: Path) -> None:
    write_study(tmp_path, policy_file=f"{PRINTING_POLICY}\nfor _ in range(200):\n    print('x' * 1000)\n")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    with subprocess.Popen(
        command(*PRINTING_RUN), cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(writer)
        with os.fdopen(reader) as stream:
            lines = stream.readlines()
        _, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, err) == (0, "")
    assert sum(line == "x" * 1000 + "\n" for line in lines) == 200


@pytest.mark.parametrize("descriptors", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_no_output_file_gets_the_descriptor_of_a_closed_stream(tmp_path: Path, descriptors: tuple[int, ...]) -> None:
    write_study(tmp_path, policy_file=PRINTING_POLICY)

    result = run_batkube(tmp_path, *PRINTING_RUN, prepare=lambda: close_all(descriptors))

    assert result.returncode == 0
    assert has_completed(tmp_path)
    outputs = [path for path in (tmp_path / "out").iterdir() if b"hello" in path.read_bytes()]
    assert outputs == []


def test_an_experiment_with_full_standard_error_succeeds(tmp_path: Path) -> None:
    write_study(tmp_path, "policy:fcfs", "policy:easy")

    with Path("/dev/full").open("w") as full:
        result = run_batkube(tmp_path, *EXPERIMENT, stderr=full)

    assert result.returncode == 0
    assert result.stdout.startswith("2 of 2 runs done")


def test_an_error_that_cannot_be_printed_keeps_its_exit_code(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = run_batkube(tmp_path, *RUN, stderr=full)

    assert result.returncode == 2
