"""What a run of the tests did not show: every skipped test, by its reason, at the end.

A test marked `headline` shows a line of the README's tables. In continuous integration (CI=true, as all such services
set it) one that is skipped has failed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Sequence

import pytest

Report = pytest.TestReport | pytest.CollectReport


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "headline: shows a line of the README's tables; fails if it is skipped in CI")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skipping of a headline test into a failure where CI runs it."""
    report = yield
    is_skipped = report.skipped and not hasattr(report, "wasxfail")
    if is_skipped and os.environ.get("CI") == "true" and item.get_closest_marker("headline"):
        report.outcome = "failed"
        report.longrepr = f"it shows a line of the README, and was skipped: {reason_of(report)}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was skipped."""
    lines = summary(terminalreporter.stats.get("skipped", []))
    if lines:
        terminalreporter.section("not shown here")
        for line in lines:
            terminalreporter.line(line)


def summary(reports: Sequence[Report]) -> list[str]:
    """Return each reason with how many tests it stopped, most first, and below it their files."""
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
    told = report.longrepr
    reason = told[2] if isinstance(told, tuple) else str(told)
    return reason.removeprefix("Skipped: ")
