"""The network of platforms that are not SimGrid files."""

from __future__ import annotations

from batkube.platforms.network_lookup import network_of
from batkube.platforms.reader import read_platform


def test_a_platform_without_a_file_has_no_network() -> None:
    assert network_of(read_platform("4x1")).hosts == {}
