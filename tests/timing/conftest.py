"""Fixtures: a clock page and the program's view of it, without a program."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

import pytest

from batkube.timing.pages.clock_page import ClockPage
from batkube.timing.pages.session_page import SessionPage


class OtherSide:
    """The program's view of the page, by slot number."""

    def __init__(self, page: ClockPage) -> None:
        self._file = os.open(page.environment["BATKUBE_PAGE"], os.O_RDWR)
        self._map = mmap.mmap(self._file, 4096)

    def __getitem__(self, slot: int) -> int:
        value: int = struct.unpack_from("<q", self._map, slot * 8)[0]
        return value

    def __setitem__(self, slot: int, value: int) -> None:
        struct.pack_into("<q", self._map, slot * 8, value)

    def close(self) -> None:
        self._map.close()
        os.close(self._file)


@pytest.fixture
def page() -> Iterator[ClockPage]:
    page = ClockPage(1000, deterministic=True, seed=77)
    yield page
    page.close()


@pytest.fixture
def program(page: ClockPage) -> Iterator[OtherSide]:
    program = OtherSide(page)
    yield program
    program.close()


@pytest.fixture
def session() -> Iterator[SessionPage]:
    """Return the clock page of a session, for programs in any language."""
    page = SessionPage(946_684_800 * 10**9, deterministic=True, seed=77, port=1)
    yield page
    page.close()
