"""Skipped tests are listed by reason, and in CI a skipped headline test fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TESTS = """
import pytest

@pytest.fixture
def data():
    pytest.skip("needs data: set DATA")

@pytest.mark.headline
def test_a_headline(data): ...

@pytest.mark.parametrize("number", range(3))
def test_a_detail(data, number): ...

@pytest.mark.skip(reason="needs Go")
def test_a_program(): ...

@pytest.mark.headline
@pytest.mark.xfail(strict=True)
def test_a_known_failure():
    assert False

def test_a_success(): ...
"""
LISTED = """
    4  needs data: set DATA
         test_it.py (4)
    1  needs Go
         test_it.py (1)
"""


def run_tests(folder: Path, *, is_ci: bool, workers: int = 0) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(TESTS)
    options = ["-p", "skip_summary", "--strict-markers", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(["-n", str(workers)] if workers else [])],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE), "CI": "true" if is_ci else "false"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_skipped_tests_are_listed_by_reason(tmp_path: Path, workers: int) -> None:
    result = run_tests(tmp_path, is_ci=False, workers=workers)

    assert result.returncode == 0
    assert LISTED in result.stdout
    assert "1 passed, 5 skipped, 1 xfailed" in result.stdout


def test_a_skipped_headline_test_fails_in_ci(tmp_path: Path) -> None:
    result = run_tests(tmp_path, is_ci=True)

    assert result.returncode == 1
    assert "supports a line of the README, and was skipped: needs data: set DATA" in result.stdout
    assert "4 skipped" in result.stdout
