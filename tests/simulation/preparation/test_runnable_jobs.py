"""Walltimes beyond the longest run, selection by status, and jobs that a platform cannot run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import run_in_process

from batkube import InputError
from batkube.simulation.preparation.runnable_jobs import keep_runnable
from batkube.workloads.reader import read_workload
from batkube.workloads.walltime_notes import WALLTIME_TOO_LONG

LINE = "{number} {number} -1 60 1 -1 -1 1 {walltime} -1 {status} 1 1 -1 -1 -1 -1 -1\n"
#: Of these types, a platform without speeds and network can only run `delay`.
PROFILES = {
    "d": {"type": "delay", "delay": 5},
    "p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
    "s": {"type": "smpi", "trace": "t.txt"},
}


def swf(folder: Path, *lines: tuple[str, str]) -> Path:
    path = folder / "t.swf"
    path.write_text("".join(LINE.format(number=n, walltime=w, status=s) for n, (w, s) in enumerate(lines, 1)))
    return path


def batsim(folder: Path, profiles: str, **extra: object) -> Path:
    jobs = [{"id": str(n), "subtime": n, "res": 1, "profile": name, **extra} for n, name in enumerate(profiles)]
    path = folder / "w.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": PROFILES}))
    return path


@pytest.mark.parametrize("walltime", ["9223372036854775807", "9300000000", "1e30", "9999999999.5"])
def test_a_walltime_of_a_trace_beyond_the_longest_run_is_ignored_with_a_note(tmp_path: Path, walltime: str) -> None:
    workload = read_workload(swf(tmp_path, (walltime, "1"), ("9200000000", "1"), (walltime, "1")))

    assert [job.walltime is None for job in workload.jobs] == [True, False, True]
    assert dict(workload.notes)[WALLTIME_TOO_LONG] == 2


def test_a_walltime_of_a_trace_that_is_not_a_number_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="requested time"):
        read_workload(swf(tmp_path, ("long", "1")))


@pytest.mark.parametrize(
    ("annotation", "deadline", "is_ignored"),
    [("100000000d", None, True), (None, 10**18, True), ("2h", 10**18, False), (None, 3600, False)],
)
def test_a_walltime_of_a_manifest_beyond_the_longest_run_is_ignored_with_a_note(
    tmp_path: Path, annotation: str | None, deadline: int | None, is_ignored: bool
) -> None:
    annotations = {"batkube.io/duration": "60"} | ({"batkube.io/walltime": annotation} if annotation else {})
    spec = {"containers": [{"name": "c", "image": "i"}]} | ({"activeDeadlineSeconds": deadline} if deadline else {})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": annotations}, "spec": spec}
    (tmp_path / "p.yaml").write_text(json.dumps(pod))
    workload = read_workload(tmp_path / "p.yaml")

    assert (workload.jobs[0].walltime is None) is is_ignored
    assert (WALLTIME_TOO_LONG in dict(workload.notes)) is is_ignored


def test_jobs_of_an_swf_trace_are_selected_by_status(tmp_path: Path) -> None:
    swf(tmp_path, ("100", "1"), ("100", "0"), ("100", "5"), ("100", "1"))
    convert = ("workload", "convert", "t.swf", "-o", "o.json")
    selected = run_in_process(tmp_path, *convert, "--status", "1", "--status", "5")
    none = run_in_process(tmp_path, *convert, "--force", "--status", "7")
    not_swf = run_in_process(tmp_path, "workload", "convert", "o.json", "-o", "p.json", "--status", "1")

    assert selected.stdout == "wrote 3 jobs to o.json\n"
    assert "has another status and is left out (once)" in selected.stderr
    assert (none.returncode, "contains no job that can run" in none.stderr) == (2, True)
    assert (not_swf.returncode, "has no job statuses" in not_swf.stderr) == (2, True)


def test_all_profiles_that_cannot_run_are_named_as_batsim_does(tmp_path: Path) -> None:
    batsim(tmp_path, "dpsppd")
    result = run_in_process(tmp_path, "run", "--workload", "w.json", "--platform", "4x1", "--out", "out")

    assert result.returncode == 2
    assert "w.json: profile 'p' of job '1': is of type 'parallel_homogeneous'" in result.stderr
    both = "; 2 profiles cannot be run: 'p' (parallel_homogeneous) of 3 jobs, 's' (smpi) of 1 job"
    assert both in result.stderr
    assert "batkube workload convert --for PLATFORM --cannot-run drop" in result.stderr


@pytest.mark.parametrize(
    ("choice", "jobs", "note"), [("drop", 2, "was left out"), ("10m", 6, "takes a fixed time instead")]
)
def test_unrunnable_jobs_are_removed_or_replaced_with_a_note_per_profile(
    tmp_path: Path, choice: str, jobs: int, note: str
) -> None:
    batsim(tmp_path, "dpsppd")
    convert = ("workload", "convert", "w.json", "-o", "o.json", "--for", "4x1", "--cannot-run", choice)
    result = run_in_process(tmp_path, *convert)
    run = run_in_process(tmp_path, "run", "--workload", "o.json", "--platform", "4x1", "--out", "out", "--quiet")

    assert result.stdout == f"wrote {jobs} jobs to o.json\n"
    assert "profile 'p' (parallel_homogeneous) is of type" in result.stderr
    assert f"its job {note} (3 times)" in result.stderr
    assert "profile 's' (smpi)" in result.stderr
    assert run.returncode == 0, run.stderr
    assert f"nb_jobs={jobs}\n" in run.stdout


def test_unrunnable_jobs_may_take_their_walltimes_and_too_large_ones_are_removed(tmp_path: Path) -> None:
    path = batsim(tmp_path, "dps", walltime=100)
    content = json.loads(path.read_text())
    content["jobs"].append({"id": "large", "subtime": 0, "res": 9, "profile": "d"})
    path.write_text(json.dumps(content))
    workload = keep_runnable(read_workload(path), "4x1", "walltime")

    assert [job.profile.name for job in workload.jobs] == ["d", "delay100", "delay100"]
    assert ["more than the platform has" in note.message for note, _ in workload.notes] == [True, False, False]


def test_walltimes_are_raised_above_run_times_that_equal_them(tmp_path: Path) -> None:
    batsim(tmp_path, "dps", walltime=100)
    fit = ("--for", "4x1", "--cannot-run", "walltime", "--raise-walltime")
    result = run_in_process(tmp_path, "workload", "convert", "w.json", "-o", "o.json", *fit)

    assert result.returncode == 0, result.stderr
    assert [job["walltime"] for job in json.loads((tmp_path / "o.json").read_text())["jobs"]] == [100, 101, 101]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--cannot-run", "drop"), "--cannot-run: requires --for"),
        (("--for", "4x1"), "--for: requires --cannot-run"),
        (("--for", "4x1", "--cannot-run", "sometimes"), "--cannot-run: 'sometimes' is not a duration"),
        (("--for", "none.xml", "--cannot-run", "drop"), "none.xml"),
    ],
)
def test_invalid_options_are_rejected(tmp_path: Path, options: tuple[str, ...], problem: str) -> None:
    batsim(tmp_path, "dps")
    result = run_in_process(tmp_path, "workload", "convert", "w.json", "-o", "o.json", *options)

    assert (result.returncode, problem in result.stderr) == (2, True), result.stderr


def test_fractional_seconds_in_a_written_trace_are_noted_in_the_file(tmp_path: Path) -> None:
    batsim(tmp_path, "d")
    whole = run_in_process(tmp_path, "workload", "convert", "w.json", "-o", "whole.swf")
    parts = run_in_process(tmp_path, "workload", "convert", "w.json", "-o", "parts.swf", "--compress", "3")

    assert (whole.stderr, "parts of seconds" in (tmp_path / "whole.swf").read_text()) == ("", False)
    assert "SWF times are whole seconds" in parts.stderr
    assert "; Note: times have parts of seconds" in (tmp_path / "parts.swf").read_text()
