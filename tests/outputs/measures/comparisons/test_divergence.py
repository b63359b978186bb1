"""Where two runs part."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.outputs.measures.comparisons.divergence import divergences


def folder(path: Path, lines: list[str], log: str | None = None) -> Path:
    path.mkdir()
    (path / "journal.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if log is not None:
        (path / "scheduler").mkdir()
        (path / "scheduler" / "log.txt").write_text(log)
    return path


SUBMIT = '{"t":0,"event":"submit","job":"w0!1","pod":"w0-1"}'
OTHER = '{"t":0,"event":"submit","job":"w0!2","pod":"w0-2"}'
BIND = '{"t":5,"event":"bind","pod":"w0-1","node":"node-%d"}'


def test_the_first_decision_that_differs_is_shown_with_what_came_before(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", [SUBMIT, OTHER, BIND % 3, OTHER])
    other = folder(tmp_path / "other", [SUBMIT, OTHER, BIND % 4])

    (found,) = divergences(one, other)

    assert list(found.describe(("one", "other"))) == [
        "journal.jsonl: the first 2 lines agree, line 3 differs",
        f"  both   {SUBMIT}",
        f"  both   {OTHER}",
        f"  one    {BIND % 3}",
        f"  one    {OTHER}",
        f"  other  {BIND % 4}",
        "  earlier lines about the same object, in both:",
        f"    {SUBMIT}",
    ]


def test_logs_are_compared_without_their_process_ids(tmp_path: Path) -> None:
    log = "I0101 00:00:00.000000   {} x.go:1] started\nI0101 00:00:00.000000   {} x.go:2] pod {}\n"
    one = folder(tmp_path / "one", [SUBMIT], log.format(1, 1, "a"))
    same = folder(tmp_path / "same", [SUBMIT], log.format(2345, 2345, "a"))
    other = folder(tmp_path / "other", [SUBMIT], log.format(3, 3, "b"))

    assert divergences(one, same) == []
    (found,) = divergences(one, other)
    assert (found.file, found.common) == ("scheduler/log.txt", 1)


def test_a_journal_that_ends_early_differs_there(tmp_path: Path) -> None:
    (found,) = divergences(folder(tmp_path / "one", [SUBMIT]), folder(tmp_path / "other", [SUBMIT, OTHER]))

    assert found.common == 1
    assert found.lines == ([], [OTHER])


@given(
    common=st.lists(st.sampled_from([SUBMIT, OTHER]), max_size=30),
    tails=st.tuples(*[st.lists(st.sampled_from([SUBMIT, OTHER]), max_size=4)] * 2),
)
def test_the_common_part_is_the_longest_common_beginning(
    tmp_path_factory: pytest.TempPathFactory, common: list[str], tails: tuple[list[str], list[str]]
) -> None:
    path = tmp_path_factory.mktemp("runs")
    left, right = (common + tail for tail in tails)
    found = divergences(folder(path / "left", left), folder(path / "right", right))

    if left == right:
        assert found == []
    else:
        (one,) = found
        assert left[: one.common] == right[: one.common]
        assert left[one.common : one.common + 1] != right[one.common : one.common + 1]


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", [])
    (tmp_path / "empty").mkdir()

    with pytest.raises(InputError, match=r"has no journal\.jsonl"):
        divergences(one, tmp_path / "empty")
