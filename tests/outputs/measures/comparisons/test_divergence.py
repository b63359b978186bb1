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
ON_THREE = '{"t":2,"event":"nominate","pod":"w0-2","node":"node-3"}'
BIND = '{"t":5,"event":"bind","pod":"w0-1","node":"node-%d"}'


def test_the_first_decision_that_differs_is_shown_with_what_came_before(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", [SUBMIT, OTHER, ON_THREE, BIND % 3, OTHER])
    other = folder(tmp_path / "other", [SUBMIT, OTHER, ON_THREE, BIND % 4])

    (found,) = divergences(one, other)

    assert list(found.describe(("one", "other"))) == [
        "journal.jsonl: line 4 is the first that differs",
        f"  both   {SUBMIT}",
        f"  both   {OTHER}",
        f"  both   {ON_THREE}",
        f"  one    {BIND % 3}",
        f"  one    {OTHER}",
        f"  other  {BIND % 4}",
        "  earlier lines about the objects that one names, in both runs:",
        f"    {SUBMIT}",
        f"    {ON_THREE}",
        "  earlier lines about the objects that other names, in both runs:",
        f"    {SUBMIT}",
    ]


def test_what_each_side_had_seen_is_about_its_own_object(tmp_path: Path) -> None:
    busy = '{"t":1,"event":"bind","job":"w0!3","machines":"2-5"}'
    chosen = '{"t":5,"event":"bind","job":"w0!%d","machines":"%d"}'
    one = folder(tmp_path / "one", [SUBMIT, OTHER, busy, chosen % (1, 7)])
    other = folder(tmp_path / "other", [SUBMIT, OTHER, busy, chosen % (2, 4)])

    (found,) = divergences(one, other)

    assert found.histories == ([SUBMIT], [OTHER, busy])


def test_what_a_program_logged_about_the_same_pod_is_shown(tmp_path: Path) -> None:
    line = 'I0101 00:00:00.000000   7 x.go:1] "%s" pod="default/w0-%d" node="node-3"\n'
    common = [line % ("waiting", 1), 'I0101 00:00:00.000000   7 x.go:2] "idle"\n']
    one = folder(tmp_path / "one", [], "".join([*common, line % ("bound", 1)]))
    other = folder(tmp_path / "other", [], "".join([*common, line % ("lost", 1)]))

    (found,) = divergences(one, other)

    assert found.histories[0] == found.histories[1]
    assert [text for text in found.describe(("one", "other")) if "waiting" in text and "both" not in text]


def test_logs_are_compared_without_their_process_ids(tmp_path: Path) -> None:
    log = "I0101 00:00:00.000000   {} x.go:1] started\nI0101 00:00:00.000000   {} x.go:2] pod {}\n"
    one = folder(tmp_path / "one", [SUBMIT], log.format(1, 1, "a"))
    same = folder(tmp_path / "same", [SUBMIT], log.format(2345, 2345, "a"))
    other = folder(tmp_path / "other", [SUBMIT], log.format(3, 3, "b"))

    assert divergences(one, same) == []
    (found,) = divergences(one, other)
    assert (found.file, found.common) == ("scheduler/log.txt", 1)


def test_a_log_may_have_lines_of_json(tmp_path: Path) -> None:
    line = '{"pod": {"name": "a"}, "machines": 3, "number": %d}\n'
    one, other = (folder(tmp_path / str(number), [], line % number) for number in range(2))

    (found,) = divergences(one, other)

    assert found.file == "scheduler/log.txt"


def test_the_logs_of_all_programs_are_compared(tmp_path: Path) -> None:
    one, other = (folder(tmp_path / name, [SUBMIT], "the same\n") for name in ("one", "other"))
    for path, text in ((one, "a\n"), (other, "b\n")):
        for program in ("volcano-controllers", "second/companion"):
            (path / "scheduler" / program).mkdir(parents=True)
            (path / "scheduler" / program / "log.txt").write_text(text)
    (one / "scheduler" / "alone").mkdir()
    (one / "scheduler" / "alone" / "log.txt").write_text("")

    found = divergences(one, other)

    assert [each.file for each in found] == [
        "scheduler/alone/log.txt",
        "scheduler/second/companion/log.txt",
        "scheduler/volcano-controllers/log.txt",
    ]
    assert "  other  (no such file)" in list(found[0].describe(("one", "other")))


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
