"""The output of programs is read to the last byte, even if the file it is copied to is truncated."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process_ends import wait_for_end

from batkube.timing.processes.program_log import ProgramLog, last_lines

MEGABYTES = 10 * 10**6


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ProgramLog]:
    log = ProgramLog(tmp_path / "log.txt")
    yield log
    log.close()


def started(log: ProgramLog, *command: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdout=log.sink, stderr=subprocess.STDOUT)
    log.close_sink()
    return process


def test_a_program_that_prints_megabytes_never_blocks_while_its_log_has_a_listener(log: ProgramLog) -> None:
    pieces: list[bytes] = []
    process = started(log, "head", "-c", str(MEGABYTES), "/dev/zero")
    log.follow(pieces.append)

    assert process.wait(timeout=30) == 0
    log.drain()
    assert sum(map(len, pieces)) == log.path.stat().st_size == MEGABYTES
    assert log.copy_error == ""


def test_the_count_stays_the_same_only_while_no_process_waits_for_the_pipe(log: ProgramLog) -> None:
    process = started(log, "head", "-c", str(MEGABYTES), "/dev/zero")
    seen = [log.drain()]
    while process.poll() is None or seen[-1] < MEGABYTES:
        seen.append(log.drain())
        if seen[-1] == seen[-2]:  # A thread that is asleep now does not wait for a full pipe.
            wchan = Path(f"/proc/{process.pid}/wchan").read_bytes()
            assert b"pipe" not in wchan or log.drain() > seen[-1]
    assert seen[-1] == MEGABYTES


def test_a_program_that_never_stops_printing_does_not_block_its_reader(log: ProgramLog) -> None:
    process = started(log, "yes")
    try:
        while log.drain() == 0:
            pass
        assert log.last_lines()[:14] == ["y"] * 14
    finally:
        process.kill()
        process.wait()


def test_closing_does_not_wait_for_a_process_that_outlives_the_program(log: ProgramLog, tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! > {tmp_path / 'child'}; echo over"
    assert started(log, "sh", "-c", script).wait(timeout=30) == 0
    child = int((tmp_path / "child").read_text())
    try:
        log.follow(lambda _: None)
        closing = threading.Thread(target=log.close)
        closing.start()
        closing.join(timeout=30)
        assert not closing.is_alive()
        assert log.path.read_text() == "over\n"
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for_end(child)


def test_a_truncated_copy_has_no_other_effect(tmp_path: Path) -> None:
    code = f"""
import os, subprocess
from pathlib import Path
from batkube.timing.processes.program_log import ProgramLog
log, pieces = ProgramLog(Path({str(tmp_path / "log.txt")!r})), []
process = subprocess.Popen(["seq", "200000"], stdout=log.sink)
log.close_sink()
log.follow(pieces.append)
process.wait()
log.close()
assert b"".join(pieces) == b"".join(b"%d\\n" % number for number in range(1, 200001))
assert log.last_lines()[-1] == "200000"
print(log.copy_error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert done.stdout == "File too large\n"
    assert (tmp_path / "log.txt").stat().st_size == 100_000


def test_the_last_lines_leave_out_the_flags_that_klog_lists() -> None:
    flags = [f'I0101 00:00:00.000000      42 flags.go:64] FLAG: --flag-{number}="1"' for number in range(40)]
    matters = 'E0101 00:00:00.000000      42 run.go:74] "command failed" err="no kind \\"Wrong\\" is registered"'

    assert last_lines("\n".join(["started", matters, *flags])) == ["started", matters]
    assert last_lines("\n".join(f"line {number}" for number in range(100))) == [f"line {n}" for n in range(85, 100)]


@pytest.mark.parametrize(
    "message", ["out of memory allocating heap arena map", "failed to reserve page summary memory"]
)
def test_a_program_without_memory_shows_the_reason_and_not_its_stack(message: str) -> None:
    stack = [f"runtime.call{number}()" for number in range(40)]

    (line,) = last_lines("\n".join(["started", f"fatal error: {message}", "", "runtime stack:", *stack]))

    assert line.startswith(f"fatal error: {message}: the machine has no memory left")
    assert "ulimit -v" in line
