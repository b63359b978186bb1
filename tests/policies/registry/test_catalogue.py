"""Policies are loaded by name or from files, with arguments; invalid ones are rejected with a message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.policies.conftest import TinyCluster, a_job, whole

from batkube.kernel.errors import InputError
from batkube.policies.easy import Easy
from batkube.policies.registry.catalogue import load_policy, policy_names
from batkube.policies.scan import BestFit, WorstFit

REPOSITORY = Path(__file__).resolve().parent.parent.parent.parent
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
    """Return the message of the InputError for a policy."""
    with pytest.raises(InputError) as caught:
        load_policy(spec, arguments)
    return str(caught.value)


def test_every_listed_name_loads_and_has_a_description() -> None:
    names = [name for name, _ in policy_names()]

    assert names[:4] == ["fcfs", "sjf", "easy", "conservative"]
    for name, description in policy_names():
        load_policy(name, {})
        assert len(description) > 20


def test_pack_and_spread_are_aliases() -> None:
    assert type(load_policy("pack", {})) is BestFit
    assert type(load_policy("spread", {})) is WorstFit
    assert type(load_policy("easy", {})) is Easy


def test_an_unknown_name_is_rejected_with_the_closest_one_and_the_list() -> None:
    text = message("conservativ")

    assert "did you mean conservative?" in text
    assert "fcfs, sjf, easy" in text


def test_arguments_are_converted_to_the_types_of_the_constructor(mine: Path) -> None:
    arguments = {"count": "4", "share": "0.25", "eager": "Yes", "label": "7", "limit": "none", "plain": "5"}

    policy = load_policy(f"{mine}:Mine", arguments)

    assert policy.got == (4, 0.25, True, "7", None, 5)  # type: ignore[attr-defined]
    assert load_policy(f"{mine}:Mine", {}).got == (3, 0.5, False, "x", 7, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("count", "4.5", "'4.5' is not a whole number"),
        ("share", "half", "'half' is not a number"),
        ("eager", "maybe", "'maybe' is neither true nor false"),
        ("limit", "many", "'many' is not a whole number"),
    ],
)
def test_an_argument_of_the_wrong_type_is_rejected_with_its_name(
    mine: Path, name: str, value: str, problem: str
) -> None:
    text = message(f"{mine}:Mine", **{name: value})

    assert f"argument '{name}': {problem}" in text
    assert "share (float, default 0.5)" in text


def test_an_unknown_argument_is_rejected_with_the_accepted_ones() -> None:
    assert "argument 'preemt': is unknown" in message("priority", preemt="true")
    assert "it takes preempt (bool, default True)" in message("priority", preemt="true")
    assert "it takes no arguments" in message("fcfs", preempt="true")


def test_a_missing_required_argument_is_rejected(mine: Path) -> None:
    assert "argument 'needed': is required" in message(f"{mine}:Strict")


def test_the_error_of_a_constructor_is_reported(mine: Path) -> None:
    assert "needed must not be negative" in message(f"{mine}:Strict", needed="-1")


def test_a_constructor_with_arbitrary_keywords_gets_texts(mine: Path) -> None:
    policy = load_policy(f"{mine}:Open", {"a": "1"})

    assert policy.anything == {"a": "1"}  # type: ignore[attr-defined]


def test_a_path_is_relative_to_the_current_folder(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)

    assert type(load_policy("./mine.py:Mine", {})).__name__ == "Mine"


def test_loading_a_file_writes_no_compiled_copy_and_does_not_change_sys_path(mine: Path) -> None:
    before = list(sys.path)

    load_policy(f"{mine}:Mine", {})

    assert sys.path == before
    assert [path.name for path in mine.parent.iterdir()] == ["mine.py"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    text = message(f"{tmp_path}/none.py:Mine")

    assert f"{tmp_path}/none.py: the file does not exist" in text


def test_a_folder_is_not_a_policy(tmp_path: Path) -> None:
    assert "cannot be read" in message(f"{tmp_path}:Mine")


def test_a_syntax_error_is_reported_with_its_line(mine: Path) -> None:
    mine.write_text("x = 1\ndef decide(:\n")

    assert f"{mine}: line 2: is not valid Python" in message(f"{mine}:Mine")


@pytest.mark.parametrize("text", ["x = 1\n\0", "# -*- coding: no-such -*-\n"])
def test_a_file_that_is_not_text_is_rejected(mine: Path, text: str) -> None:
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
def test_a_file_that_fails_during_import_is_reported_with_its_line(mine: Path, line: str, problem: str) -> None:
    mine.write_text(f"x = 1\n\n{line}\n")

    assert f"{mine}: line 3: failed during import: {problem}" in message(f"{mine}:Mine")


def test_an_unknown_class_is_rejected_with_the_existing_ones(mine: Path) -> None:
    text = message(f"{mine}:Yours")

    assert "Yours: the file does not define this class" in text
    assert "policies in this file: Mine, Strict, Open, Idle" in text


def test_a_class_that_is_not_a_policy_is_rejected(mine: Path) -> None:
    assert "Bystander: is not a subclass of batkube.policies.Policy" in message(f"{mine}:Bystander")


def test_a_file_without_a_class_name_is_rejected_with_its_classes(mine: Path) -> None:
    text = message(str(mine))

    assert "no class is named" in text
    assert "Mine, Strict, Open, Idle" in text


def test_a_file_without_policies_is_rejected_with_advice(mine: Path) -> None:
    mine.write_text("x = 1\n")

    assert "derive a class from batkube.policies.Policy" in message(f"{mine}:Mine")


def test_the_example_policy_prefers_small_jobs_until_others_have_waited_long() -> None:
    jobs = [
        a_job("running", 4, 10),
        a_job("large", 4, 50, submit_s=1),
        *(a_job(f"small{number}", 4, 10, submit_s=2 + number) for number in range(4)),
    ]
    spec = f"{EXAMPLES}/smallest_area_first.py:SmallestAreaFirst"

    with_default = TinyCluster(whole(4)).run(load_policy(spec, {}), jobs)
    with_short_patience = TinyCluster(whole(4)).run(load_policy(spec, {"patience": "25s"}), jobs)

    assert with_default.starts_s["large"] == 50
    assert with_short_patience.starts_s["large"] == 30


def test_the_policy_on_the_how_to_page_is_the_example_in_at_most_twenty_lines(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "write-a-policy.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    (tmp_path / "mine.py").write_text(code)
    jobs = [a_job(str(number), 1 + number % 3, 5 + number * 7 % 11, submit_s=number) for number in range(12)]

    from_page = TinyCluster(whole(3)).run(load_policy(f"{tmp_path}/mine.py:SmallestAreaFirst", {}), jobs)
    from_example = TinyCluster(whole(3)).run(
        load_policy(f"{EXAMPLES}/smallest_area_first.py:SmallestAreaFirst", {}), jobs
    )

    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    assert from_page.events == from_example.events


def test_a_policy_without_decide_is_rejected_before_the_run(mine: Path) -> None:
    assert "has no method decide" in message(f"{mine}:Idle")
