"""Policies by name, from files, with arguments; and what is said when they cannot be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.policies.conftest import TinyCluster, a_job, whole

from batkube.kernel.errors import InputError
from batkube.policies.easy import Easy
from batkube.policies.registry.catalogue import load_policy, policy_names
from batkube.policies.scan import BestFit, WorstFit

REPOSITORY = Path(__file__).resolve().parent.parent.parent
EXAMPLES = REPOSITORY / "examples" / "policies"

MINE = """
from __future__ import annotations
from dataclasses import dataclass
from batkube.policies import Policy, Start

@dataclass
class Note:
    text: str

class Mine(Policy):
    def __init__(self, count: int = 3, share: float = 0.5, eager: bool = False, label: str = "x",
                 limit: int | None = 7, plain=2) -> None:
        self.got = (count, share, eager, label, limit, plain)

    def decide(self, view):
        yield from ()

class Strict(Policy):
    def __init__(self, *, needed: int) -> None:
        if needed < 0:
            raise ValueError("needed must not be negative")

class Open(Policy):
    def __init__(self, **anything: str) -> None:
        self.anything = anything

    def decide(self, view):
        yield from ()

class Idle(Policy):
    pass

class Bystander:
    pass
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def message(spec: str, **arguments: str) -> str:
    """Return what is said when the policy is refused."""
    with pytest.raises(InputError) as caught:
        load_policy(spec, arguments)
    return str(caught.value)


def test_every_listed_name_loads_and_has_a_description() -> None:
    names = [name for name, _ in policy_names()]

    assert names[:4] == ["fcfs", "sjf", "easy", "conservative"]
    for name, description in policy_names():
        load_policy(name, {})
        assert len(description) > 20


def test_pack_and_spread_are_other_names() -> None:
    assert type(load_policy("pack", {})) is BestFit
    assert type(load_policy("spread", {})) is WorstFit
    assert type(load_policy("easy", {})) is Easy


def test_an_unknown_name_is_answered_with_the_nearest_and_the_list() -> None:
    said = message("conservativ")

    assert "did you mean conservative?" in said
    assert "fcfs, sjf, easy" in said


def test_arguments_are_converted_to_the_types_the_constructor_states(mine: Path) -> None:
    arguments = {"count": "4", "share": "0.25", "eager": "Yes", "label": "7", "limit": "none", "plain": "5"}

    policy = load_policy(f"{mine}:Mine", arguments)

    assert policy.got == (4, 0.25, True, "7", None, 5)  # type: ignore[attr-defined]
    assert load_policy(f"{mine}:Mine", {}).got == (3, 0.5, False, "x", 7, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("count", "4.5", "'4.5' is not a whole number"),
        ("share", "half", "'half' is not a number"),
        ("eager", "maybe", "'maybe' is neither true nor false"),
        ("limit", "many", "'many' is not a whole number"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused_with_its_name(mine: Path, name: str, text: str, problem: str) -> None:
    said = message(f"{mine}:Mine", **{name: text})

    assert f"argument '{name}': {problem}" in said
    assert "share (float, default 0.5)" in said


def test_an_unknown_argument_is_refused_with_those_accepted() -> None:
    assert "argument 'preemt': is unknown" in message("priority", preemt="true")
    assert "it takes preempt (bool, default True)" in message("priority", preemt="true")
    assert "it takes no arguments" in message("fcfs", preempt="true")


def test_a_required_argument_is_asked_for(mine: Path) -> None:
    assert "argument 'needed': is required" in message(f"{mine}:Strict")


def test_what_the_constructor_refuses_is_passed_on(mine: Path) -> None:
    assert "needed must not be negative" in message(f"{mine}:Strict", needed="-1")


def test_a_constructor_that_takes_anything_gets_the_texts(mine: Path) -> None:
    policy = load_policy(f"{mine}:Open", {"a": "1"})

    assert policy.anything == {"a": "1"}  # type: ignore[attr-defined]


def test_a_path_is_relative_to_the_current_folder(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)

    assert type(load_policy("./mine.py:Mine", {})).__name__ == "Mine"


def test_loading_a_file_leaves_no_compiled_copy_and_no_trace_in_the_search_path(mine: Path) -> None:
    before = list(sys.path)

    load_policy(f"{mine}:Mine", {})

    assert sys.path == before
    assert [path.name for path in mine.parent.iterdir()] == ["mine.py"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    said = message(f"{tmp_path}/none.py:Mine")

    assert f"{tmp_path}/none.py: there is no such file" in said


def test_a_folder_is_not_a_policy(tmp_path: Path) -> None:
    assert "cannot be read" in message(f"{tmp_path}:Mine")


def test_a_syntax_error_is_told_with_its_line(mine: Path) -> None:
    mine.write_text("x = 1\ndef decide(:\n")

    assert f"{mine}: line 2: is not valid Python" in message(f"{mine}:Mine")


@pytest.mark.parametrize("text", ["x = 1\n\0", "# -*- coding: no-such -*-\n"])
def test_a_file_that_is_not_text_is_refused(mine: Path, text: str) -> None:
    mine.write_text(text)

    assert "is not valid Python" in message(f"{mine}:Mine")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import helper_beside_it", "ModuleNotFoundError: No module named 'helper_beside_it'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_file_that_fails_while_imported_is_told_with_its_line(mine: Path, line: str, problem: str) -> None:
    mine.write_text(f"x = 1\n\n{line}\n")

    assert f"{mine}: line 3: failed while it was imported: {problem}" in message(f"{mine}:Mine")


def test_a_class_that_is_not_there_is_answered_with_those_that_are(mine: Path) -> None:
    said = message(f"{mine}:Yours")

    assert "Yours: the file defines no such class" in said
    assert "policies in this file: Mine, Strict, Open, Idle" in said


def test_a_class_that_is_no_policy_is_refused(mine: Path) -> None:
    assert "Bystander: is not a subclass of batkube's Policy" in message(f"{mine}:Bystander")


def test_a_file_without_a_class_name_is_answered_with_the_classes(mine: Path) -> None:
    said = message(str(mine))

    assert "no class is named" in said
    assert "Mine, Strict, Open, Idle" in said


def test_a_file_without_policies_is_told_how_to_begin(mine: Path) -> None:
    mine.write_text("x = 1\n")

    assert "derive a class from batkube.policies.Policy" in message(f"{mine}:Mine")


def test_the_example_policy_prefers_small_jobs_until_others_lose_patience() -> None:
    jobs = [
        a_job("running", 4, 10),
        a_job("large", 4, 50, submit_s=1),
        *(a_job(f"small{number}", 4, 10, submit_s=2 + number) for number in range(4)),
    ]
    spec = f"{EXAMPLES}/smallest_area_first.py:SmallestAreaFirst"

    patient = TinyCluster(whole(4)).run(load_policy(spec, {}), jobs)
    hurried = TinyCluster(whole(4)).run(load_policy(spec, {"patience": "25s"}), jobs)

    assert patient.starts_s["large"] == 50
    assert hurried.starts_s["large"] == 30


def test_the_policy_on_the_how_to_page_is_the_example_in_at_most_twenty_lines(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "write-a-policy.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "mine.py").write_text(code)
    jobs = [a_job(str(number), 1 + number % 3, 5 + number * 7 % 11, submit_s=number) for number in range(12)]

    shown = TinyCluster(whole(3)).run(load_policy(f"{tmp_path}/mine.py:SmallestAreaFirst", {}), jobs)
    kept = TinyCluster(whole(3)).run(load_policy(f"{EXAMPLES}/smallest_area_first.py:SmallestAreaFirst", {}), jobs)

    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    assert shown.story == kept.story


def test_a_policy_without_decide_is_refused_before_the_run(mine: Path) -> None:
    assert "has no method decide" in message(f"{mine}:Idle")
