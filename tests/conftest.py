"""Fixtures for the whole suite."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings
from tests import opt_in, skip_summary
from tests.simulated_cluster import Cluster

import batkube
from batkube.policies import Policy
from batkube.schedulers.build.builder import build_path, ensure_built
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe
from batkube.schedulers.recipes import local_recipe

# No deadline, because machines may be slow; derandomized, so that everyone gets the same examples.
settings.register_profile("batkube", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("batkube")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """List skipped tests at the end, and restore signals that a shell (`&`) or `nohup` ignores."""
    config.pluginmanager.register(skip_summary)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published traces, runs and platforms, next to the repository or at $BATKUBE_SHARED_DATA."""
    folder = Path(os.environ.get("BATKUBE_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("needs published files that the repository may not contain: set BATKUBE_SHARED_DATA")
    return folder


@pytest.fixture(scope="session")
def kube_scheduler() -> str:
    """The path of kube-scheduler 1.34.4 for virtual time, built on first use in the user's cache."""
    return str(ensure_built(find_recipe("kube-scheduler@1.34.4"), cache_folder(), print))


@pytest.fixture(scope="session")
def built_program() -> Callable[[str], str]:
    """A function that returns its argument if that program of the catalogue is built, and otherwise skips the test."""

    def require(name: str) -> str:
        if not build_path(find_recipe(name), cache_folder()).exists() and not opt_in.IS_ENABLED:
            pytest.skip(f"needs `batkube schedulers build {name}`, or make test-all, which builds it")
        return name

    return require


@pytest.fixture(scope="session")
def faulty_scheduler(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the scheduler of tests/go/schedulers; its option --way selects how it misbehaves."""
    binary = ensure_built(local_recipe(REPOSITORY / "tests" / "go" / "schedulers", "."), cache_folder())
    return str(Path(shutil.copy(binary, tmp_path_factory.mktemp("wayward") / "wayward")))


@pytest.fixture
def world() -> Cluster:
    """A cluster of four nodes with four cpus each."""
    return Cluster("4x4,16Gi")


@pytest.fixture
def make_world() -> type[Cluster]:
    """The class of clusters, for tests with other platforms."""
    return Cluster


class Simulate(Protocol):
    """Runs jobs given as Batsim JSON entries."""

    def __call__(
        self,
        jobs: Sequence[Mapping[str, object]],
        profiles: Mapping[str, Mapping[str, object]],
        *,
        platform: str = "4x1",
        scheduler: str | Sequence[str] | Policy | type[Policy] = "policy:fcfs",
        **options: Any,  # noqa: ANN401 - passed on to batkube.run
    ) -> batkube.Run: ...


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """A function that writes a Batsim workload and runs it; `tmp_path / "out"` is the output folder."""

    def run(
        jobs: Sequence[Mapping[str, object]],
        profiles: Mapping[str, Mapping[str, object]],
        *,
        platform: str = "4x1",
        scheduler: str | Sequence[str] | Policy | type[Policy] = "policy:fcfs",
        **options: Any,  # noqa: ANN401
    ) -> batkube.Run:
        workload = tmp_path / "workload.json"
        workload.write_text(json.dumps({"nb_res": 4, "jobs": list(jobs), "profiles": dict(profiles)}))
        options.setdefault("out", tmp_path / "out")
        return batkube.run(workload=workload, platform=platform, scheduler=scheduler, force=True, **options)

    return run
