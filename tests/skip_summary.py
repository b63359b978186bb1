"""Plugin that lists skipped tests by reason at the end of a run.

A test marked `headline` supports a line of the README's tables. In continuous integration (CI=true, which all services
set) it fails if it is skipped.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Sequence

import pytest

Report = pytest.TestReport | pytest.CollectReport


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "headline: supports a line of the README's tables; fails if it is skipped in CI")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a skipped headline test fail in CI."""
    report = yield
    is_skipped = report.skipped and not hasattr(report, "wasxfail")
    if is_skipped and os.environ.get("CI") == "true" and item.get_closest_marker("headline"):
        report.outcome = "failed"
        report.longrepr = f"supports a line of the README, and was skipped: {reason_of(report)}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the skipped tests."""
    lines = summary(terminalreporter.stats.get("skipped", []))
    if lines:
        terminalreporter.section("skipped tests")
        for line in lines:
            terminalreporter.line(line)


def summary(reports: Sequence[Report]) -> list[str]:
    """Return each reason with its number of tests, largest first, followed by their files."""
    reasons: dict[str, Counter[str]] = {}
    for report in reports:
        reasons.setdefault(reason_of(report), Counter())[report.nodeid.partition("::")[0]] += 1
    lines = []
    for reason, files in sorted(reasons.items(), key=lambda entry: (-entry[1].total(), entry[0])):
        lines.append(f"{files.total():>5}  {reason}")
        lines += [f"         {file} ({count})" for file, count in sorted(files.items())]
    return lines


def reason_of(report: Report) -> str:
    """Return why a test was skipped."""
    representation = report.longrepr
    reason = representation[2] if isinstance(representation, tuple) else str(representation)
    return reason.removeprefix("Skipped: ")
