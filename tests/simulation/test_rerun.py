"""A run that moves: repeated from its folder, wherever that and its inputs are now, and what differs is told."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.commands import answer_here

import batkube
from batkube.policies.fcfs import Fcfs
from batkube.scenarios.relocation import files_in_command_lines, relocate
from batkube.simulation import run_record

WORKLOAD = {
    "nb_res": 2,
    "jobs": [{"id": str(number), "subtime": number, "res": 1, "profile": "d"} for number in range(8)],
    "profiles": {"d": {"type": "delay", "delay": 5}},
}
#: A policy that depends on what no manifest tells: a file that it opens by itself.
FICKLE = """
from pathlib import Path
from batkube.policies import Policy, Start

class Fickle(Policy):
    def decide(self, view):
        jobs = list(view.queue)
        if Path(__file__).with_name("mood.txt").exists():
            jobs.reverse()
        for job in jobs:
            place = view.free.fit(job)
            if place is not None:
                yield Start(job, place)
"""
#: A policy that starts nothing.
LAZY = """
from batkube.policies import Policy

class Lazy(Policy):
    def decide(self, view):
        yield from ()
"""
PLATFORM = """<platform version="4.1"><zone id="z" routing="Full">
<host id="master_host" speed="1Gf"><prop id="role" value="master"/></host>
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/></zone></platform>"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with inputs, of which runs are made."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "data" / "w.json").write_text(json.dumps(WORKLOAD))
    (home / "mine.py").write_text(FICKLE)
    return home


RUN = ("run", "--workload", "data/w.json", "--platform", "2x1", "--quiet", "--out", "out")


def ran(folder: Path, *options: str) -> None:
    result = answer_here(folder, *RUN, *options)
    assert result.returncode == 0, result.stderr


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return content


def test_a_study_that_was_moved_whole_is_repeated_from_anywhere(home: Path, tmp_path: Path) -> None:
    ran(home, "--scheduler", "policy:mine.py:Fickle")
    moved, elsewhere = tmp_path / "moved", tmp_path / "elsewhere"
    home.rename(moved)
    elsewhere.mkdir()

    result = answer_here(elsewhere, "rerun", str(moved / "out"), "--out", "again")

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"identical: digest {manifest_of(moved / 'out')['digest']}, and byte for byte ")
    for name in ("jobs.csv", "schedule.csv", "pods.csv", "machine_states.csv", "journal.jsonl", "fidelity.json"):
        assert name in result.stdout
        assert (elsewhere / "again" / name).read_bytes() == (moved / "out" / name).read_bytes()


def test_a_packed_run_needs_nothing_else(home: Path, tmp_path: Path) -> None:
    ran(home, "--scheduler", "policy:mine.py:Fickle", "--pack")
    shutil.move(home / "out", tmp_path / "alone")
    shutil.rmtree(home)

    result = answer_here(tmp_path, "rerun", "alone")

    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "alone" / "inputs").rglob("*.*")) == ["mine.py", "w.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"alone"}  # without --out nothing is kept


def test_an_input_that_is_nowhere_is_named_with_its_hash_and_found_under_another_name(home: Path) -> None:
    ran(home)
    workload = home / "data" / "w.json"
    digest = hashlib.sha256(workload.read_bytes()).hexdigest()
    (home / "far" / "away").mkdir(parents=True)
    workload.rename(home / "far" / "away" / "renamed")
    workload.write_text("{}")  # of the same name, and another file

    missing = answer_here(home, "rerun", "out")
    present = answer_here(home, "rerun", "out", "--inputs", "far")
    absent = answer_here(home, "rerun", "out", "--inputs", "near")

    assert missing.returncode == 2
    assert f"cannot be run again without data/w.json (sha256 {digest})" in missing.stderr
    assert "remedy: say with --inputs where it is" in missing.stderr
    assert present.returncode == 0, present.stderr
    assert (absent.returncode, "there is no such file or folder" in absent.stderr) == (2, True)


def test_what_differs_is_told_with_the_first_line_that_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(home, "--scheduler", "policy:mine.py:Fickle")
    (home / "mood.txt").touch()
    monkeypatch.setattr(run_record, "__version__", "99.0")

    result = answer_here(home, "rerun", "out", "--quiet", "--out", "again")

    old, new = ((home / folder / "journal.jsonl").read_text().splitlines() for folder in ("out", "again"))
    number = next(number for number, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
    assert result.returncode == 1
    assert result.stdout.startswith("differs: the digest was ")
    assert f"  journal.jsonl differs, first in line {number + 1}\n    was: {old[number]}"[:200] in result.stdout
    assert "  jobs.csv differs, first in line " in result.stdout
    assert "Batkube was " in result.stdout
    assert ", and is 99.0" in result.stdout


def test_a_file_that_was_changed_after_the_run_is_not_called_the_same(home: Path) -> None:
    ran(home)
    jobs = home / "out" / "jobs.csv"
    first, second, *others = jobs.read_text().splitlines(keepends=True)
    jobs.write_text("".join([first, second.replace("COMPLETED", "IMPROVED"), *others]))
    (home / "out" / "pods.csv").unlink()  # what is gone claims nothing

    result = answer_here(home, "rerun", "out")

    assert result.returncode == 1
    assert result.stdout.startswith("differs, but the digest is the same: ")
    assert "  jobs.csv was modified after the run, first in line 2\n    was: " in result.stdout
    assert "IMPROVED" in result.stdout
    assert "pods.csv differs" not in result.stdout


def test_a_failed_run_that_fails_again_is_the_same(home: Path) -> None:
    (home / "lazy.py").write_text(LAZY)
    assert answer_here(home, *RUN, "--scheduler", "policy:lazy.py:Lazy").returncode == 1

    result = answer_here(home, "rerun", "out")

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda out: shutil.rmtree(out), "no such folder"),
        (lambda out: (out / "manifest.json").unlink(), "is not the output folder of a run"),
        (lambda out: (out / "manifest.json").write_text('{"batkube": "1"}'), "was edited"),
    ],
)
def test_what_is_no_run_is_refused(home: Path, change: Any, problem: str) -> None:  # noqa: ANN401
    ran(home)
    change(home / "out")

    result = answer_here(home, "rerun", "out")

    assert (result.returncode, problem in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--out", "out", "--force"), "--out out: is the run itself"),
        (("--pack",), "--pack: requires --out"),
        (("--outputs", "jobs.csv"), "outputs: 'jobs' is no file to choose"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(home: Path, options: tuple[str, ...], problem: str) -> None:
    ran(home)
    result = answer_here(home, "rerun", "out", *options)

    assert (result.returncode, problem in result.stderr) == (2, True), result.stderr


def test_a_policy_that_was_an_object_is_in_no_file(home: Path) -> None:
    class Mine(Fcfs):
        pass

    batkube.run(workload=home / "data" / "w.json", platform="2x1", scheduler=Mine, out=home / "out", pack=True)
    result = answer_here(home, "rerun", "out")

    assert (result.returncode, "was an object in Python, and is in no file" in result.stderr) == (2, True)
    assert (home / "out" / "inputs" / "0" / "w.json").is_file()


def test_files_that_inputs_name_are_inputs_and_keep_their_places(home: Path, tmp_path: Path) -> None:
    (home / "traces" / "parts").mkdir(parents=True)
    (home / "traces" / "list.txt").write_text("parts/0.txt\nparts/1.txt\n")
    for rank in range(2):
        (home / "traces" / "parts" / f"{rank}.txt").write_text(f"{rank} m_usage 1.0 2e9\n")
    jobs = [{"id": "1", "subtime": 0, "res": 2, "profile": "u"}]
    profiles = {"u": {"type": "usage_trace", "trace": "../traces/list.txt"}}
    (home / "data" / "w.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    (home / "p.xml").write_text(PLATFORM)
    (home / "more").mkdir()
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    (home / "more" / "settings.json").write_text(json.dumps(settings))
    (home / "more" / "events.yaml").write_text("- at: 1\n  apply: settings.json\n")
    ran(home, "--platform", "./p.xml", "--events", "more/events.yaml", "--pack")

    names = ["list.txt", "0.txt", "1.txt", "w.json", "p.xml", "settings.json", "events.yaml"]
    assert sorted(Path(one["path"]).name for one in manifest_of(home / "out")["inputs"]) == sorted(names)
    shutil.move(home / "out", tmp_path / "packed")
    home.rename(tmp_path / "gone")
    packed = answer_here(tmp_path, "rerun", "packed")
    assert packed.returncode == 0, packed.stderr
    # Without the pack, and with all files in one heap, links put them where they belong.
    shutil.rmtree(tmp_path / "packed" / "inputs")
    (tmp_path / "heap").mkdir()
    for number, path in enumerate(sorted((tmp_path / "gone").rglob("*.*"))):
        shutil.copy(path, tmp_path / "heap" / str(number))
    heap = answer_here(tmp_path, "rerun", "packed", "--inputs", "heap")
    assert heap.returncode == 0, heap.stderr


def test_files_can_be_left_out_and_had_later(home: Path) -> None:
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d", "cpu": 1} for number in range(4)]
    (home / "data" / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    ran(home, "--platform", "2x4", "--outputs", "journal")
    ran(home, "--platform", "2x4", "--out", "all")

    assert sorted(path.name for path in (home / "out").iterdir()) == [
        "fidelity.json",
        "jobs.csv",
        "journal.jsonl",
        "manifest.json",
        "schedule.csv",
    ]
    assert manifest_of(home / "out")["left_out"] == ["pods.csv", "machine_states.csv"]
    assert manifest_of(home / "out")["digest"] == manifest_of(home / "all")["digest"]
    drawn = answer_here(home, "gantt", "out", "-o", "g.svg")
    assert drawn.returncode == 2
    assert "pods.csv was left out of this run" in drawn.stderr
    assert "remedy: batkube rerun out --outputs all --out NEW" in drawn.stderr
    report = answer_here(home, "report", "out", "-o", "r.html")
    assert report.returncode == 0, report.stderr
    assert "Not drawn: pods.csv was left out of this run" in (home / "r.html").read_text()
    assert answer_here(home, "rerun", "out", "--outputs", "all", "--out", "again").returncode == 0
    assert (home / "again" / "pods.csv").read_bytes() == (home / "all" / "pods.csv").read_bytes()
    assert answer_here(home, "gantt", "again", "-o", "g.svg").returncode == 0


def test_whole_machines_are_drawn_without_pods(home: Path) -> None:
    ran(home, "--outputs", "none")
    drawn = answer_here(home, "gantt", "out", "-o", "g.svg")

    assert drawn.returncode == 0, drawn.stderr
    assert manifest_of(home / "out")["left_out"] == ["pods.csv", "machine_states.csv", "journal.jsonl"]


def test_a_file_that_is_always_written_cannot_be_chosen(home: Path) -> None:
    result = answer_here(home, *RUN, "--outputs", "jobs.csv")

    assert result.returncode == 2
    assert "outputs: 'jobs' is no file to choose" in result.stderr


def test_a_real_scheduler_gives_the_same_from_its_pack(home: Path, tmp_path: Path, kube_scheduler: str) -> None:
    (home / "bin").mkdir()
    shutil.copy(kube_scheduler, home / "bin" / "scheduler")
    jobs = [{"id": str(number), "subtime": number, "res": 1, "profile": "d", "cpu": 1} for number in range(8)]
    (home / "data" / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    ran(home, "--platform", "2x4", "--scheduler", "./bin/scheduler --v=2", "--pack")
    shutil.move(home / "out", tmp_path / "alone")
    shutil.rmtree(home)

    result = answer_here(tmp_path, "rerun", "alone")

    assert result.returncode == 0, result.stdout + result.stderr
    assert "pods.csv" in result.stdout


NAMES = some.text("abc-_.", min_size=1, max_size=8).filter(lambda name: name.strip(".-"))


@given(name=NAMES, argument=NAMES, place=NAMES)
def test_a_path_is_replaced_as_a_whole_word_only(name: str, argument: str, place: str) -> None:
    path, target = f"x/{name}", f"/y z/{place}"
    scenario = {
        "workload": [path, f"{path}0"],
        "scheduler": f"policy:./{path}:Mine",
        "attach": [f"python:{path} --rules={path}", f"q{path} {argument}"],
        "seed": 1,
    }

    assert relocate(scenario, {path: target}) == {
        "workload": [target, f"{path}0"],
        "scheduler": f"policy:{target}:Mine",
        "attach": [f"python:'{target}' --rules='{target}'", f"q{path} {argument}"],
        "seed": 1,
    }


def test_files_are_seen_in_commands_and_those_of_the_system_are_not(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.touch()

    assert files_in_command_lines([f"python:{script} --rules={script}", "/usr/bin/env x", "a" * 5000 + "."]) == [script]
