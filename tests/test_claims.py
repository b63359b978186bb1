"""Figures of the README and of the pages that compare: each table says what shows it, and that exists."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.api.test_conformance import ACCEPTED
from tests.batsim import test_recorded_runs
from tests.conftest import REPOSITORY
from tests.graph.test_published_cases import DIFFERENCES

from conformance import CASES
from conformance.replaying import case_files

EXPLANATION = REPOSITORY / "docs" / "explanation"
README = REPOSITORY / "README.md"
RESULTS = EXPLANATION / "results.md"
#: The pages that show results, and from which heading on.
PAGES = {
    README: "## Results",
    RESULTS: "",
    EXPLANATION / "trust.md": "",
    EXPLANATION / "study-2020.md": "",
    EXPLANATION / "performance.md": "",
    EXPLANATION / "gang-schedulers.md": "",
}
SHOWN_BY = "Shown by "
#: What a number looks like in the results of benchmarks.
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def tables(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each table of a page that has figures in it, and the paragraph that follows it."""
    text = page.read_text(encoding="utf-8")
    blocks = text[text.index(PAGES[page]) :].split("\n\n")
    for block, after in zip(blocks, [*blocks[1:], ""], strict=True):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        if len(rows) > 2 and any(re.search(r"\d", row) for row in rows[2:]):
            yield block, after.strip()


def existing(word: str) -> bool:
    """Say whether what stands between two backticks is there: a file, a target of make, or something else."""
    if word.startswith("make "):
        return re.search(rf"^{word.removeprefix('make ')}:", (REPOSITORY / "Makefile").read_text(), re.M) is not None
    path = next((part for part in word.split() if "/" in part or part.endswith((".py", ".yaml"))), "")
    return not path or (REPOSITORY / path).exists() or any(REPOSITORY.rglob(f"*/{path}"))


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_table_of_figures_says_what_shows_it(page: Path) -> None:
    found = list(tables(page))

    assert found
    for table, after in found:
        assert after.startswith(SHOWN_BY), f"{page.name}: nothing says what shows the table\n{table[:300]}"
        words = re.findall(r"`([^`]+)`", after.partition("\n\n")[0])
        assert words
        assert [word for word in words if not existing(word)] == []


def test_figures_that_are_measured_are_those_of_the_results() -> None:
    """What `python benchmarks/NAME.py` shows stands in benchmarks/results/NAME.md; ratios follow from it."""
    for table, after in tables(EXPLANATION / "performance.md"):
        name = re.search(r"benchmarks/(\w+)\.py", after)
        assert name is not None, after
        results = (REPOSITORY / "benchmarks" / "results" / f"{name[1]}.md").read_text(encoding="utf-8")
        known = {_plain(number) for number in _NUMBER.findall(results)}
        for row in table.splitlines()[2:]:
            numbers = [_plain(number) for number in _NUMBER.findall(row)]
            assert sum(number in known for number in numbers) >= len(numbers) / 2, f"{name[1]}: {row}"


def _plain(number: str) -> str:
    """Return a number as it stands in both: without separators, and rounded as the page does."""
    value = float(number.replace(",", ""))
    return f"{value:.0f}" if value >= 1000 else f"{value:g}"


def test_the_page_of_results_counts_what_the_tests_count(shared_data: Path) -> None:
    page = RESULTS.read_text(encoding="utf-8")
    with (shared_data / "fluxion" / "index.csv").open(encoding="utf-8") as file:
        sessions = list(csv.DictReader(file))
    different = sum(session["command_script"] in DIFFERENCES for session in sessions)

    assert f"| {len(sessions)} sessions with Fluxion's resource-query |" in page
    assert f"[{len(sessions) - different} equal]" in page


def test_the_page_of_results_counts_recorded_runs_and_answers() -> None:
    page = RESULTS.read_text(encoding="utf-8")
    ours = test_recorded_runs
    agreeing = [*ours.AGREE, *ours.REFUSED, *ours.ABANDONED, "dump_context"]
    accepted = msgspec.json.decode(ACCEPTED.read_bytes(), type=dict[str, dict[str, str]])

    assert f"| {len(agreeing) + len(ours.NOT_REPEATED)} runs of schedulers under Batsim" in page
    assert f"[{len(agreeing)} agree]" in page
    assert f"{len(ours.NOT_REPEATED)} use what is refused by name" in page
    assert f"answers of the API, {len(list(case_files(CASES)))} recorded cases" in page
    assert f"but for [{len(accepted)} messages]" in page


def test_the_page_on_security_counts_the_answers_about_rights() -> None:
    cases = [msgspec.json.decode(path.read_bytes()) for path in case_files(CASES) if path.parent.name == "auth"]
    page = (EXPLANATION / "security.md").read_text(encoding="utf-8")

    assert f"{sum(len(case['steps']) for case in cases)} of its answers were recorded for this alone" in page


def test_the_readme_repeats_figures_of_the_page_of_results() -> None:
    """Each cell that is short enough to be a figure stands there as well, or is a sum or an excerpt named here."""
    page = RESULTS.read_text(encoding="utf-8")
    known = {_plain(number) for number in _NUMBER.findall(page)} | {_plain("231,357")}
    table = next(block for block, _ in tables(README))

    for row in table.splitlines()[2:]:
        assert {_plain(number) for number in _NUMBER.findall(row)} <= known, row
