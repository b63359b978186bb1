"""A served cluster, a bare API, and kubectl for each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from batkube.kernel.errors import RunFailed
from clients.kubectl import Kubectl, build_kubectl
from clients.serving import Served, served

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    """The real kubectl, built on first use."""
    try:
        return build_kubectl()
    except RunFailed as error:
        pytest.skip(f"needs kubectl: {error}")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A simulated cluster of four nodes with 4 cpus each, served by `batkube serve`."""
    with served(tmp_path_factory.mktemp("cluster") / "out", "--platform", "4x4,16Gi") as running:
        yield running


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A served API without nodes and controllers."""
    with served(tmp_path_factory.mktemp("bare") / "out", "--bare") as running:
        yield running


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """The name of a namespace for one test."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    return f"{name[:50].strip('-')}-{next(_NUMBERS)}"


@pytest.fixture
def kubectl(cluster: Served, kubectl_program: Path, tmp_path: Path, namespace: str) -> Kubectl:
    """A kubectl for the simulated cluster, in a new namespace."""
    everywhere = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)
    everywhere("create", "namespace", namespace)
    return everywhere.within(namespace)
