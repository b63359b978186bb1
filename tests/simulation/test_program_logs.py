"""Results do not depend on how much a program prints, nor on the file to which its output is copied."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import batkube
import published
from batkube.kernel.errors import RunFailed
from conftest import Simulate

OUTPUTS = ("jobs.csv", "pods.csv", "journal.jsonl", "machine_states.csv")
#: Smaller than the scheduler's log, and larger than every other file.
LIMIT_BYTES = 300_000

IN_PYTHON = """
import time
while True:
    print(("x" * 99 + "\\n") * 100_000, end="", flush=True)
    print("at", int(time.time()) - 946_684_800, flush=True)
    time.sleep(100)
"""
IN_SHELL = """#!/bin/sh
line=$(printf %099d 0)
while :; do
    yes $line | head -n 100000
    echo at $(($(date +%s) - 946684800))
    sleep 100
done
"""


@pytest.mark.parametrize("language", ["python", "shell"])
def test_a_program_that_prints_ten_megabytes_at_a_time_stays_on_the_clock(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path, language: str
) -> None:
    """A program that waits for space in a full pipe is asleep, but not idle: time must not advance."""
    if language == "python":
        (tmp_path / "chatty.py").write_text(IN_PYTHON)
        program = f"python:{tmp_path / 'chatty.py'}"
    else:
        (tmp_path / "chatty.sh").write_text(IN_SHELL)
        (tmp_path / "chatty.sh").chmod(0o755)
        program = f"preload:{tmp_path / 'chatty.sh'}"
    jobs = [{"id": str(number), "subtime": 7 * number, "res": 1, "profile": "short"} for number in range(40)]

    run = simulate(jobs, {"short": {"type": "delay", "delay": 3}}, scheduler=kube_scheduler, attach=[program])

    (log,) = (run.path / "scheduler").glob("*/log.txt")
    at = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("at")]
    assert len(at) >= 3
    assert at == [at[0] + 100 * number for number in range(len(at))]
    assert sorted(run.jobs["finish_time"]) == [7 * number + 3 for number in range(40)]


def test_the_last_lines_of_a_program_that_crashes_are_complete(simulate: Simulate, tmp_path: Path) -> None:
    program = tmp_path / "crash.py"
    program.write_text("print('x\\n' * 2_000_000, flush=True)\nraise SystemExit('the last word')\n")
    with pytest.raises(RunFailed, match=r"(?s)ended with exit code 1; its last lines.*\n    the last word"):
        simulate(
            [{"id": "0", "subtime": 0, "res": 1, "profile": "a"}],
            {"a": {"type": "delay", "delay": 3}},
            scheduler=f"python:{program}",
        )


def test_a_truncated_log_file_does_not_change_results(kube_scheduler: str, tmp_path: Path) -> None:
    burst = published.WORKLOADS["burst"](tmp_path)
    arguments = {"workload": str(burst), "platform": published.SIXTEEN, "scheduler": kube_scheduler}
    whole = batkube.run(**arguments, resources="requests")
    options = [text for name, value in arguments.items() for text in (f"--{name}", value)]
    out = tmp_path / "cut"
    subprocess.run(
        [sys.executable, "-m", "batkube", "run", *options, "--resources", "requests", "--out", str(out), "--quiet"],
        check=True,
        capture_output=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES)),
    )

    assert (out / "scheduler" / "log.txt").stat().st_size == LIMIT_BYTES
    assert (whole.path / "scheduler" / "log.txt").stat().st_size > LIMIT_BYTES
    assert {name: (out / name).read_bytes() for name in OUTPUTS} == {
        name: (whole.path / name).read_bytes() for name in OUTPUTS
    }
    (note,) = json.loads((out / "fidelity.json").read_text())
    assert note["subject"] == "log"
    assert note["example"].endswith(": File too large")
    assert json.loads((whole.path / "fidelity.json").read_text()) == []
