"""Programs in C on the run's clock: timed waits are in virtual time, and sleeping threads are detected."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from batkube.schedulers.preload_library import clock_library, native_source_folder
from batkube.timing.pages.clock_page import NEVER
from batkube.timing.pages.session_page import SessionPage

START_NS = 946_684_800_000_000_000  # 2000-01-01
LIBRARY_FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]


class Compiled(NamedTuple):
    library: Path
    specimen: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library)}


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("native")
    specimen = folder / "waits"
    source = native_source_folder() / "specimen" / "waits.c"
    subprocess.run(["cc", *LIBRARY_FLAGS, "-o", str(specimen), str(source)], check=True)
    return Compiled(clock_library(folder / "cache"), specimen)


def test_the_library_exports_only_functions_of_the_c_library(compiled: Compiled) -> None:
    """Any other exported name would replace the same name in a program's own libraries."""
    library = ctypes.CDLL(str(compiled.library))

    assert library.clock_gettime
    for name in ("page", "clock_init", "register_connection", "release_slot"):
        assert not hasattr(library, name)


def run_to_end(page: SessionPage, environment: dict[str, str], *command: str) -> list[str]:
    """Run a command from wait to wait until it ends; return its output lines."""
    environment = {**page.environment, "PATH": "/usr/bin:/bin", "TZ": "UTC", **environment}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        page.set_process(process.pid)
        while process.poll() is None:
            number = page.probe()
            while not page.is_idle_since(number) and process.poll() is None:
                page.wait(0.01)
            if process.poll() is None and page.next_timer < NEVER:
                page.now = page.next_timer
        assert process.stdout is not None
        assert process.returncode == 0
        return process.stdout.read().splitlines()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("sleeps", ["3600000 sleep", "3600500 usleep", "90000500 nanosleep", "90002000 clock_nanosleep"]),
        (
            "files",
            [
                "2000 poll",
                "4000 ppoll",
                "7250 select",
                "11250 epoll_wait",
                "11250 epoll_wait at once",
                "11250 poll at once",
            ],
        ),
        ("children", ["100000 read from a child", "200000 waitpid"]),
        (
            "threads",
            [
                "10000 sem_timedwait",
                "30000 cond_timedwait",
                "50000 cond_clockwait",
                "80000 sem_timedwait posted",
                "110000 cond_timedwait signalled",
                "115000 mutex_timedlock",
                "140500 mutex_timedlock locked",
                "140500 join",
            ],
        ),
    ],
)
def test_all_timed_waits_of_c_are_in_virtual_time(
    session: SessionPage, compiled: Compiled, what: str, lines: list[str]
) -> None:
    first, *rest = run_to_end(session, compiled.environment, str(compiled.specimen), what)
    assert first == f"{START_NS // 10**9} {START_NS // 10**9}"
    assert rest == lines


def test_threads_with_timers_run_in_the_order_of_time(session: SessionPage, compiled: Compiled) -> None:
    _, *rest = run_to_end(session, compiled.environment, str(compiled.specimen), "ticks")
    moments = sorted((period * count, period) for period in (700, 1100, 1300) for count in range(1, 6))
    assert rest == [*(f"{at} tick of {period}" for at, period in moments), "6500 join"]


def test_a_shell_and_its_children_use_the_clock(session: SessionPage, compiled: Compiled) -> None:
    script = "date -u +%s; for i in 1 2 3; do sleep 100 & sleep 30 | cat; wait; done; date -u +%s"
    assert run_to_end(session, compiled.environment, "bash", "-c", script) == [
        str(START_NS // 10**9),
        str(START_NS // 10**9 + 300),
    ]
