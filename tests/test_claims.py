"""Tables of results in the README and on pages: each names the test or benchmark that shows it, which exists."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.api.test_conformance import ACCEPTED
from tests.batsim.simulator import test_recorded_runs
from tests.conftest import REPOSITORY
from tests.graph.test_published_cases import DIFFERENCES

from conformance import CASES
from conformance.replaying import case_files

EXPLANATION = REPOSITORY / "docs" / "explanation"
README = REPOSITORY / "README.md"
RESULTS = EXPLANATION / "results.md"
#: The pages with results, and the heading at which these begin.
PAGES = {
    README: "## Results",
    RESULTS: "",
    EXPLANATION / "trust.md": "",
    EXPLANATION / "study-2020.md": "",
    EXPLANATION / "performance.md": "",
    EXPLANATION / "gang-schedulers.md": "",
}
SHOWN_BY = "Shown by "
#: Numbers in the results of benchmarks.
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def tables(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each table of a page that contains numbers, and the paragraph after it."""
    text = page.read_text(encoding="utf-8")
    blocks = text[text.index(PAGES[page]) :].split("\n\n")
    for block, after in zip(blocks, [*blocks[1:], ""], strict=True):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        if len(rows) > 2 and any(re.search(r"\d", row) for row in rows[2:]):
            yield block, after.strip()


def exists(word: str) -> bool:
    """Return whether a file or a target of make exists; other words count as existing."""
    if word.startswith("make "):
        return re.search(rf"^{word.removeprefix('make ')}:", (REPOSITORY / "Makefile").read_text(), re.M) is not None
    path = next((part for part in word.split() if "/" in part or part.endswith((".py", ".yaml"))), "")
    return not path or (REPOSITORY / path).exists() or any(REPOSITORY.rglob(f"*/{path}"))


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_table_of_results_names_its_source(page: Path) -> None:
    page_tables = list(tables(page))

    assert page_tables
    for table, after in page_tables:
        assert after.startswith(SHOWN_BY), (
            f"{page.name}: no sentence after the table begins with {SHOWN_BY!r}\n{table[:300]}"
        )
        words = re.findall(r"`([^`]+)`", after.partition("\n\n")[0])
        assert words
        assert [word for word in words if not exists(word)] == []


def test_measured_numbers_equal_those_in_the_results_of_benchmarks() -> None:
    """benchmarks/results/NAME.md has the results of benchmarks/NAME.py; ratios on the page follow from them."""
    for table, after in tables(EXPLANATION / "performance.md"):
        name = re.search(r"benchmarks/(\w+)\.py", after)
        assert name is not None, after
        results = (REPOSITORY / "benchmarks" / "results" / f"{name[1]}.md").read_text(encoding="utf-8")
        known = {_plain(number) for number in _NUMBER.findall(results)}
        for row in table.splitlines()[2:]:
            numbers = [_plain(number) for number in _NUMBER.findall(row)]
            assert sum(number in known for number in numbers) >= len(numbers) / 2, f"{name[1]}: {row}"


def _plain(number: str) -> str:
    """Return a number without separators, and rounded as on the page."""
    value = float(number.replace(",", ""))
    return f"{value:.0f}" if value >= 1000 else f"{value:g}"


def test_the_results_page_has_the_number_of_fluxion_sessions(shared_data: Path) -> None:
    page = RESULTS.read_text(encoding="utf-8")
    with (shared_data / "fluxion" / "index.csv").open(encoding="utf-8") as file:
        sessions = list(csv.DictReader(file))
    different = sum(session["command_script"] in DIFFERENCES for session in sessions)

    assert f"| {len(sessions)} sessions with Fluxion's resource-query |" in page
    assert f"[{len(sessions) - different} equal]" in page


def test_the_results_page_has_the_numbers_of_recorded_runs_and_responses() -> None:
    page = RESULTS.read_text(encoding="utf-8")
    ours = test_recorded_runs
    agreeing = [*ours.AGREE, *ours.ABORTED, *ours.UNFINISHED, "dump_context"]
    accepted = msgspec.json.decode(ACCEPTED.read_bytes(), type=dict[str, dict[str, str]])

    assert f"| {len(agreeing) + len(ours.UNSUPPORTED)} runs of schedulers under Batsim" in page
    assert f"[{len(agreeing)} agree]" in page
    assert f"{len(ours.UNSUPPORTED)} use features that are rejected by name" in page
    assert f"answers of the API, {len(list(case_files(CASES)))} recorded cases" in page
    assert f"but for [{len(accepted)} messages]" in page


def test_the_security_page_has_the_number_of_recorded_authorization_responses() -> None:
    cases = [msgspec.json.decode(path.read_bytes()) for path in case_files(CASES) if path.parent.name == "auth"]
    page = (EXPLANATION / "security.md").read_text(encoding="utf-8")

    assert f"{sum(len(case['steps']) for case in cases)} of its answers were recorded for this alone" in page


def test_the_numbers_of_the_readme_are_on_the_results_page() -> None:
    """Except for a sum, which is listed here."""
    page = RESULTS.read_text(encoding="utf-8")
    known = {_plain(number) for number in _NUMBER.findall(page)} | {_plain("231,357")}
    table = next(block for block, _ in tables(README))

    for row in table.splitlines()[2:]:
        assert {_plain(number) for number in _NUMBER.findall(row)} <= known, row
