"""Concurrent and interrupted builds, with real processes and a real Go."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batkube.schedulers.build.records import cached_builds
from schedulers.conftest import needs_go, real_go

pytestmark = needs_go

Launch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.com/tiny\n\ngo 1.24\n")
    (folder / "main.go").write_text('package main\n\nfunc main() { println("tiny") }\n')
    return folder


@pytest.fixture
def launch(module: Path, tmp_path: Path) -> Iterator[Launch]:
    """Starts `batkube schedulers build` on the module, as leader of its own process group."""
    go_cache = subprocess.run(
        [str(real_go()), "env", "GOCACHE"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {**os.environ, "GOCACHE": go_cache, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    started = []

    def start(*, first_on_path: Path | None = None) -> subprocess.Popen[str]:
        paths = [*([str(first_on_path)] if first_on_path else []), os.environ["PATH"]]
        process = subprocess.Popen(
            [sys.executable, "-m", "batkube", "schedulers", "build", "--module", str(module)],
            env={**environment, "PATH": os.pathsep.join(paths)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        # A killed build leaves its compiler behind, in the same process group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def stuck_go(tmp_path: Path) -> Path:
    """The folder of a `go` that writes half of a program and never finishes."""
    folder = tmp_path / "stuck"
    folder.mkdir()
    os.mkfifo(folder / "is-building")
    script = folder / "go"
    script.write_text(
        f"""#!/bin/bash
[ "$1" = build ] || exec {real_go()} "$@"
while [ "$1" != -o ]; do shift; done
echo half > "$2"
trap 'touch {folder}/interrupted; kill $!; exit 1' INT
echo yes > {folder}/is-building
sleep 1000 & wait $!  # while bash waits for a command in the foreground, it may lose the signal
"""
    )
    script.chmod(0o755)
    return folder


def output_of(process: subprocess.Popen[str]) -> str:
    """Return the standard output of a build once it has succeeded."""
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    return stdout.strip()


def test_two_concurrent_builds_of_a_program_both_succeed(launch: Launch, tmp_path: Path) -> None:
    first, second = launch(), launch()

    binary = output_of(first)

    assert output_of(second) == binary
    assert subprocess.run([binary], capture_output=True, text=True, check=True).stderr == "tiny\n"
    (build,) = cached_builds(tmp_path / "cache" / "batkube")
    assert sorted(path.name for path in build.folder.iterdir()) == [".overlay", "build.json", "tiny"]


def test_a_killed_build_leaves_no_program_and_is_repeated(launch: Launch, stuck_go: Path, tmp_path: Path) -> None:
    killed = launch(first_on_path=stuck_go)
    assert (stuck_go / "is-building").read_text() == "yes\n"
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    (broken,) = cached_builds(tmp_path / "cache" / "batkube")
    assert broken.record is None
    assert not (broken.folder / "tiny").exists()

    binary = output_of(launch())

    assert Path(binary).parent == broken.folder
    assert subprocess.run([binary], capture_output=True, text=True, check=True).stderr == "tiny\n"
    assert not list(broken.folder.glob("*.partial"))


def test_a_build_that_is_stopped_stops_the_compiler_too(launch: Launch, stuck_go: Path) -> None:
    stopped = launch(first_on_path=stuck_go)
    assert (stuck_go / "is-building").read_text() == "yes\n"

    stopped.terminate()
    _, stderr = stopped.communicate(timeout=60)

    assert stopped.returncode == 130
    assert stderr.endswith("interrupted\n")
    assert (stuck_go / "interrupted").exists()
