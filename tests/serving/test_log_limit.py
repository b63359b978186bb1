"""The limit on log messages of a served cluster."""

from __future__ import annotations

import logging

import pytest

from batkube.serving.log_limit import rate_limited_log


def test_frequent_long_records_are_limited_and_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("batkube.test")
    with rate_limited_log():
        for _ in range(1000):
            log.warning("%s", "y" * 100_000)
    written = capsys.readouterr().err

    assert 0 < written.count("\n") < 100
    assert len(written) < 1_000_000
