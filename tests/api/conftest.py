"""A running server for the tests of the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.serving import Serving, serving


@pytest.fixture
def server() -> Iterator[Serving]:
    """A bare server of ours on a free loopback port."""
    with serving() as running:
        yield running
