"""Servers for the tests of the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.direct import Direct
from conformance.serving import Serving, serving


@pytest.fixture
def server() -> Iterator[Serving]:
    """A bare server of ours on a free loopback port."""
    with serving() as running:
        yield running


@pytest.fixture
def direct() -> Direct:
    """An API server that is called directly, with the namespace `default`."""
    server = Direct()
    server.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return server
