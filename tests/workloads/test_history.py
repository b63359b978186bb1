"""The history of a workload file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batkube.workloads.history import HISTORY_KEY, STEP_LABEL, UNREADABLE_STEP, Source, Step
from batkube.workloads.reader import read_workload
from batkube.workloads.writer import write_workload

STEP = Step(
    command="batkube workload convert",
    batkube="0.3.0",
    options=("--user", "two  spaces", "--queue", "a\nb"),
    sources=(Source(name="t.swf", sha256="0" * 64),),
    jobs=1,
    changes={"walltimes replaced": 2583},
    notes={"a note": 2},
)
SWF = "; MaxProcs: 4\n1 0 -1 5 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1\n"


@pytest.mark.parametrize("name", ["a.swf", "a.json", "a.yaml", "a.swf.gz"])
def test_a_file_keeps_the_steps_that_it_was_written_with(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.swf").write_text(SWF)
    write_workload(read_workload(tmp_path / "t.swf"), tmp_path / name, step=STEP)

    (step,) = read_workload(tmp_path / name).header.history
    assert (step.options, step.sources, step.changes) == (STEP.options, STEP.sources, STEP.changes)


@pytest.mark.parametrize("value", ["{", '{"command": 1}', "[]", "[" * 5000])
def test_an_unreadable_step_is_left_out_with_a_note(tmp_path: Path, value: str) -> None:
    path = tmp_path / "t.swf"
    path.write_text(f"; {STEP_LABEL}: {value}\n{SWF}")
    workload = read_workload(path)

    assert workload.header.history == ()
    assert workload.notes == ((UNREADABLE_STEP, 1),)


@pytest.mark.parametrize("value", [7, {"a": 1}, [1], [{"command": "x"}]])
def test_a_foreign_key_of_batsim_json_is_left_out_with_a_note(tmp_path: Path, value: object) -> None:
    path = tmp_path / "w.json"
    jobs = [{"id": "1", "subtime": 0, "res": 1, "profile": "d"}]
    profiles = {"d": {"type": "delay", "delay": 1}}
    path.write_text(json.dumps({"jobs": jobs, "profiles": profiles, HISTORY_KEY: value}))
    workload = read_workload(path)

    assert workload.header.history == ()
    assert workload.notes == ((UNREADABLE_STEP, 1),)


def test_a_step_reads_as_a_sentence() -> None:
    assert str(STEP) == (
        "batkube workload convert --user 'two  spaces' --queue 'a\nb' of t.swf (SHA-256 000000000000): 1 jobs; "
        "2,583 walltimes replaced; 2 × a note"
    )
