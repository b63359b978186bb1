"""Reruns of a run from its folder: moved, packed, with inputs elsewhere, and with differences."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.commands import run_in_process

import batkube
from batkube.policies.fcfs import Fcfs
from batkube.scenarios.relocation import files_in_command_lines, relocate
from batkube.simulation import run_record

WORKLOAD = {
    "nb_res": 2,
    "jobs": [{"id": str(number), "subtime": number, "res": 1, "profile": "d"} for number in range(8)],
    "profiles": {"d": {"type": "delay", "delay": 5}},
}
#: A policy that depends on a file that is not in the manifest, because the policy opens it itself.
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
    """A folder with the inputs of runs."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "data" / "w.json").write_text(json.dumps(WORKLOAD))
    (home / "mine.py").write_text(FICKLE)
    return home


RUN = ("run", "--workload", "data/w.json", "--platform", "2x1", "--quiet", "--out", "out")


def ran(folder: Path, *options: str) -> None:
    result = run_in_process(folder, *RUN, *options)
    assert result.returncode == 0, result.stderr


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return content


def test_a_moved_study_can_be_rerun_from_any_folder(home: Path, tmp_path: Path) -> None:
    ran(home, "--scheduler", "policy:mine.py:Fickle")
    moved, elsewhere = tmp_path / "moved", tmp_path / "elsewhere"
    home.rename(moved)
    elsewhere.mkdir()

    result = run_in_process(elsewhere, "rerun", str(moved / "out"), "--out", "again", "--trust")

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"identical: digest {manifest_of(moved / 'out')['digest']}, and byte for byte ")
    for name in ("jobs.csv", "schedule.csv", "pods.csv", "machine_states.csv", "journal.jsonl", "fidelity.json"):
        assert name in result.stdout
        assert (elsewhere / "again" / name).read_bytes() == (moved / "out" / name).read_bytes()


def test_a_packed_run_needs_no_other_files(home: Path, tmp_path: Path) -> None:
    ran(home, "--scheduler", "policy:mine.py:Fickle", "--pack")
    shutil.move(home / "out", tmp_path / "alone")
    shutil.rmtree(home)

    result = run_in_process(tmp_path, "rerun", "alone", "--trust")

    assert result.returncode == 0
    assert result.stderr.startswith("executes code: alone/manifest.json names policy:")
    assert sorted(path.name for path in (tmp_path / "alone" / "inputs").rglob("*.*")) == ["mine.py", "w.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"alone"}  # without --out nothing is kept


def test_a_missing_input_is_reported_with_its_hash_and_found_under_another_name(home: Path) -> None:
    ran(home)
    workload = home / "data" / "w.json"
    digest = hashlib.sha256(workload.read_bytes()).hexdigest()
    (home / "far" / "away").mkdir(parents=True)
    workload.rename(home / "far" / "away" / "renamed")
    workload.write_text("{}")  # a different file of the same name

    missing = run_in_process(home, "rerun", "out")
    present = run_in_process(home, "rerun", "out", "--inputs", "far")
    absent = run_in_process(home, "rerun", "out", "--inputs", "near")

    assert missing.returncode == 2
    assert f"cannot be repeated without data/w.json (sha256 {digest})" in missing.stderr
    assert "remedy: pass its current path with --inputs" in missing.stderr
    assert present.returncode == 0, present.stderr
    assert (absent.returncode, "there is no such file or folder" in absent.stderr) == (2, True)


def test_differences_are_reported_with_their_first_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(home, "--scheduler", "policy:mine.py:Fickle")
    (home / "mood.txt").touch()
    monkeypatch.setattr(run_record, "__version__", "99.0")

    result = run_in_process(home, "rerun", "out", "--quiet", "--out", "again")

    old, new = ((home / folder / "journal.jsonl").read_text().splitlines() for folder in ("out", "again"))
    number = next(number for number, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
    assert result.returncode == 1
    assert result.stdout.startswith("differs: the digest was ")
    assert f"  journal.jsonl differs, first in line {number + 1}\n    was: {old[number]}"[:200] in result.stdout
    assert "  jobs.csv differs, first in line " in result.stdout
    assert "Batkube was " in result.stdout
    assert ", and is 99.0" in result.stdout


def test_a_file_modified_after_the_run_is_reported(home: Path) -> None:
    ran(home)
    jobs = home / "out" / "jobs.csv"
    first, second, *others = jobs.read_text().splitlines(keepends=True)
    jobs.write_text("".join([first, second.replace("COMPLETED", "IMPROVED"), *others]))
    (home / "out" / "pods.csv").unlink()  # a missing file does not count as used

    result = run_in_process(home, "rerun", "out")

    assert result.returncode == 1
    assert result.stdout.startswith("differs, but the digest is the same: ")
    assert "  jobs.csv was modified after the run, first in line 2\n    was: " in result.stdout
    assert "IMPROVED" in result.stdout
    assert "pods.csv differs" not in result.stdout


def test_a_failed_run_that_fails_again_is_identical(home: Path) -> None:
    (home / "lazy.py").write_text(LAZY)
    assert run_in_process(home, *RUN, "--scheduler", "policy:lazy.py:Lazy").returncode == 1

    result = run_in_process(home, "rerun", "out")

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda out: shutil.rmtree(out), "no such folder"),
        (lambda out: (out / "manifest.json").unlink(), "is not the output folder of a run"),
        (lambda out: (out / "manifest.json").write_text('{"batkube": "1"}'), "was edited"),
    ],
)
def test_a_folder_that_is_not_a_run_is_rejected(home: Path, change: Any, problem: str) -> None:  # noqa: ANN401
    ran(home)
    change(home / "out")

    result = run_in_process(home, "rerun", "out")

    assert (result.returncode, problem in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--out", "out", "--force"), "--out out: is the run itself"),
        (("--pack",), "--pack: requires --out"),
        (("--outputs", "jobs.csv"), "outputs: 'jobs' is not an optional output"),
    ],
)
def test_invalid_options_are_rejected(home: Path, options: tuple[str, ...], problem: str) -> None:
    ran(home)
    result = run_in_process(home, "rerun", "out", *options)

    assert (result.returncode, problem in result.stderr) == (2, True), result.stderr


def test_a_policy_given_as_an_object_cannot_be_rerun(home: Path) -> None:
    class Mine(Fcfs):
        pass

    batkube.run(workload=home / "data" / "w.json", platform="2x1", scheduler=Mine, out=home / "out", pack=True)
    result = run_in_process(home, "rerun", "out")

    assert (result.returncode, "was a Python object, which is not in a file" in result.stderr) == (2, True)
    assert (home / "out" / "inputs" / "0" / "w.json").is_file()


def test_files_to_which_inputs_refer_are_inputs_and_keep_their_relative_paths(home: Path, tmp_path: Path) -> None:
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
    packed = run_in_process(tmp_path, "rerun", "packed")
    assert packed.returncode == 0, packed.stderr
    # Without the pack, and with all files in one folder, links provide the original layout.
    shutil.rmtree(tmp_path / "packed" / "inputs")
    (tmp_path / "heap").mkdir()
    for number, path in enumerate(sorted((tmp_path / "gone").rglob("*.*"))):
        shutil.copy(path, tmp_path / "heap" / str(number))
    heap = run_in_process(tmp_path, "rerun", "packed", "--inputs", "heap")
    assert heap.returncode == 0, heap.stderr


def test_outputs_that_were_left_out_can_be_written_by_a_rerun(home: Path) -> None:
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d", "cpu": 1} for number in range(4)]
    (home / "data" / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    ran(home, "--platform", "2x4", "--outputs", "journal")
    ran(home, "--platform", "2x4", "--out", "all")

    assert sorted(path.name for path in (home / "out").iterdir()) == [
        "fidelity.json",
        "jobs.csv",
        "journal.jsonl",
        "manifest.json",
        "nodes.csv",
        "schedule.csv",
    ]
    assert manifest_of(home / "out")["left_out"] == ["pods.csv", "machine_states.csv"]
    assert manifest_of(home / "out")["digest"] == manifest_of(home / "all")["digest"]
    drawn = run_in_process(home, "gantt", "out", "-o", "g.svg")
    assert drawn.returncode == 2
    assert "pods.csv was left out of this run" in drawn.stderr
    assert "remedy: batkube rerun out --outputs all --out NEW" in drawn.stderr
    report = run_in_process(home, "report", "out", "-o", "r.html")
    assert report.returncode == 0, report.stderr
    assert "Not drawn: pods.csv was left out of this run" in (home / "r.html").read_text()
    assert run_in_process(home, "rerun", "out", "--outputs", "all", "--out", "again").returncode == 0
    assert (home / "again" / "pods.csv").read_bytes() == (home / "all" / "pods.csv").read_bytes()
    assert run_in_process(home, "gantt", "again", "-o", "g.svg").returncode == 0


def test_a_gantt_chart_of_whole_machines_needs_no_pods_csv(home: Path) -> None:
    ran(home, "--outputs", "none")
    drawn = run_in_process(home, "gantt", "out", "-o", "g.svg")

    assert drawn.returncode == 0, drawn.stderr
    assert manifest_of(home / "out")["left_out"] == ["pods.csv", "machine_states.csv", "journal.jsonl"]


def test_files_that_are_always_written_are_not_a_choice_of_outputs(home: Path) -> None:
    result = run_in_process(home, *RUN, "--outputs", "jobs.csv")

    assert result.returncode == 2
    assert "outputs: 'jobs' is not an optional output" in result.stderr


def test_a_packed_run_with_a_real_scheduler_is_identical(home: Path, tmp_path: Path, kube_scheduler: str) -> None:
    (home / "bin").mkdir()
    shutil.copy(kube_scheduler, home / "bin" / "scheduler")
    jobs = [{"id": str(number), "subtime": number, "res": 1, "profile": "d", "cpu": 1} for number in range(8)]
    (home / "data" / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    ran(home, "--platform", "2x4", "--scheduler", "./bin/scheduler --v=2", "--pack")
    shutil.move(home / "out", tmp_path / "alone")
    shutil.rmtree(home)

    result = run_in_process(tmp_path, "rerun", "alone", "--trust")

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


def test_files_in_command_lines_are_inputs_except_those_of_the_system(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.touch()

    assert files_in_command_lines([f"python:{script} --rules={script}", "/usr/bin/env x", "a" * 5000 + "."]) == [script]
