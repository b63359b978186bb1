"""The first divergence of two runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.outputs.measures.comparisons.divergence import divergences


def write_run(path: Path, lines: list[str], log: str | None = None) -> Path:
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


def test_the_first_difference_is_shown_with_earlier_lines(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [SUBMIT, OTHER, ON_THREE, BIND % 3, OTHER])
    other = write_run(tmp_path / "other", [SUBMIT, OTHER, ON_THREE, BIND % 4])

    (differences,) = divergences(one, other)

    assert list(differences.describe(("one", "other"))) == [
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


def test_the_history_of_each_side_is_about_its_own_object(tmp_path: Path) -> None:
    earlier = '{"t":1,"event":"bind","job":"w0!3","machines":"2-5"}'
    binding = '{"t":5,"event":"bind","job":"w0!%d","machines":"%d"}'
    one = write_run(tmp_path / "one", [SUBMIT, OTHER, earlier, binding % (1, 7)])
    other = write_run(tmp_path / "other", [SUBMIT, OTHER, earlier, binding % (2, 4)])

    (differences,) = divergences(one, other)

    assert differences.histories == ([SUBMIT], [OTHER, earlier])


def test_earlier_log_lines_about_the_same_pod_are_shown(tmp_path: Path) -> None:
    line = 'I0101 00:00:00.000000   7 x.go:1] "%s" pod="default/w0-%d" node="node-3"\n'
    common = [line % ("waiting", 1), 'I0101 00:00:00.000000   7 x.go:2] "idle"\n']
    one = write_run(tmp_path / "one", [], "".join([*common, line % ("bound", 1)]))
    other = write_run(tmp_path / "other", [], "".join([*common, line % ("lost", 1)]))

    (differences,) = divergences(one, other)

    assert differences.histories[0] == differences.histories[1]
    assert [text for text in differences.describe(("one", "other")) if "waiting" in text and "both" not in text]


def test_logs_are_compared_without_their_process_ids(tmp_path: Path) -> None:
    log = "I0101 00:00:00.000000   {} x.go:1] started\nI0101 00:00:00.000000   {} x.go:2] pod {}\n"
    one = write_run(tmp_path / "one", [SUBMIT], log.format(1, 1, "a"))
    same = write_run(tmp_path / "same", [SUBMIT], log.format(2345, 2345, "a"))
    other = write_run(tmp_path / "other", [SUBMIT], log.format(3, 3, "b"))

    assert divergences(one, same) == []
    (differences,) = divergences(one, other)
    assert (differences.file, differences.common) == ("scheduler/log.txt", 1)


def test_a_log_may_contain_json(tmp_path: Path) -> None:
    line = '{"pod": {"name": "a"}, "machines": 3, "number": %d}\n'
    one, other = (write_run(tmp_path / str(number), [], line % number) for number in range(2))

    (differences,) = divergences(one, other)

    assert differences.file == "scheduler/log.txt"


def test_the_logs_of_all_programs_are_compared(tmp_path: Path) -> None:
    one, other = (write_run(tmp_path / name, [SUBMIT], "the same\n") for name in ("one", "other"))
    for path, text in ((one, "a\n"), (other, "b\n")):
        for program in ("volcano-controllers", "second/companion"):
            (path / "scheduler" / program).mkdir(parents=True)
            (path / "scheduler" / program / "log.txt").write_text(text)
    (one / "scheduler" / "alone").mkdir()
    (one / "scheduler" / "alone" / "log.txt").write_text("")

    differences = divergences(one, other)

    assert [each.file for each in differences] == [
        "scheduler/alone/log.txt",
        "scheduler/second/companion/log.txt",
        "scheduler/volcano-controllers/log.txt",
    ]
    assert "  other  (no such file)" in list(differences[0].describe(("one", "other")))


def test_a_journal_that_ends_early_differs_at_its_end(tmp_path: Path) -> None:
    (differences,) = divergences(write_run(tmp_path / "one", [SUBMIT]), write_run(tmp_path / "other", [SUBMIT, OTHER]))

    assert differences.common == 1
    assert differences.lines == ([], [OTHER])


@given(
    common=st.lists(st.sampled_from([SUBMIT, OTHER]), max_size=30),
    tails=st.tuples(*[st.lists(st.sampled_from([SUBMIT, OTHER]), max_size=4)] * 2),
)
def test_the_common_part_is_the_longest_common_prefix(
    tmp_path_factory: pytest.TempPathFactory, common: list[str], tails: tuple[list[str], list[str]]
) -> None:
    path = tmp_path_factory.mktemp("runs")
    left, right = (common + tail for tail in tails)
    differences = divergences(write_run(path / "left", left), write_run(path / "right", right))

    if left == right:
        assert differences == []
    else:
        (one,) = differences
        assert left[: one.common] == right[: one.common]
        assert left[one.common : one.common + 1] != right[one.common : one.common + 1]


def test_a_folder_without_a_journal_is_rejected(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [])
    (tmp_path / "empty").mkdir()

    with pytest.raises(InputError, match=r"has no journal\.jsonl"):
        divergences(one, tmp_path / "empty")
