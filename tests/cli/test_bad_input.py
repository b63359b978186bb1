"""Bad input: one message with file, place and problem, exit code 2, no traceback, no output folder."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import resource
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest

from batkube.cli.main import main

VALID = {
    "nb_res": 2,
    "jobs": [{"id": "1", "subtime": 0, "res": 1, "profile": "d"}, {"id": "2", "subtime": 1, "res": 1, "profile": "d"}],
    "profiles": {"d": {"type": "delay", "delay": 5}},
}


def batkube(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, which is much faster than a new one for each case."""
    command = ["batkube", *map(str, arguments)]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.chdir(cwd), redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", command):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def run(folder: Path, *more: str | Path, workload: str = "w.json", platform: str = "2x1") -> list[str | Path]:
    return ["run", "--workload", workload, "--platform", platform, "--out", folder / "out", *more]


def assert_rejected(result: subprocess.CompletedProcess[str], folder: Path, *words: str) -> None:
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("error: ")
    for word in words:
        assert word in result.stderr
    assert not (folder / "out").exists()
    assert not list(folder.glob(".out*"))


def workload_with(**changes: object) -> str:
    content = json.loads(json.dumps(VALID))
    content["jobs"][1].update(changes)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"jobs": [\n  {"id": "1",,}\n]}', ["w.json", "line 2"]),
        ("[]", ["w.json"]),
        (json.dumps({**VALID, "jobs": []}), ["w.json: jobs", "empty"]),
        (workload_with(profile="nope"), ["w.json", "jobs[1]", "'nope'", "remedy: "]),
        (workload_with(subtime=-3), ["w.json", "jobs[1].subtime"]),
        (workload_with(walltime=-7), ["w.json", "jobs[1].walltime"]),
        (workload_with(res=0), ["w.json", "jobs[1].res"]),
        (workload_with(id="1"), ["w.json", "'1'", "jobs[0]", "jobs[1]"]),
        (workload_with(res=3), ["w.json", "job '2'", "can never run", "3 machines", "remedy: "]),
        (workload_with(cpu="2"), ["w.json", "job '2'", "cpu 2", "at most cpu 1"]),
        (workload_with(memory="lots"), ["w.json", "jobs[1].memory", "lots"]),
    ],
)
def test_an_invalid_batsim_workload_is_rejected_with_the_place(tmp_path: Path, content: str, words: list[str]) -> None:
    (tmp_path / "w.json").write_text(content)

    assert_rejected(batkube(*run(tmp_path), cwd=tmp_path), tmp_path, *words)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("smpi", {"trace": "t.txt"}),
        ("data_staging", {"nb_bytes": 1, "from": "a", "to": "b"}),
        ("parallel_homogeneous_pfs", {"bytes_to_read": 1, "bytes_to_write": 1}),
        ("parallel_homogeneous", {"cpu": 1, "com": 1}),
        ("no_such_type", {}),
    ],
)
def test_an_unsupported_profile_is_rejected_by_name(tmp_path: Path, kind: str, fields: dict[str, object]) -> None:
    (tmp_path / "w.json").write_text(json.dumps({**VALID, "profiles": {"d": {"type": kind, **fields}}}))

    result = batkube(*run(tmp_path), cwd=tmp_path)

    assert_rejected(result, tmp_path, "w.json: profile")
    assert kind.replace("_", "") in result.stderr.lower().replace("_", "")


def test_a_missing_usage_trace_is_named(tmp_path: Path) -> None:
    profiles = {"d": {"type": "usage_trace", "trace": "t.txt"}}
    (tmp_path / "w.json").write_text(json.dumps({**VALID, "profiles": profiles}))

    assert_rejected(batkube(*run(tmp_path), cwd=tmp_path), tmp_path, "t.txt: no such file")


SWF_LINE = "1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"; a comment\n{SWF_LINE}\n2 0 -1 ten 1 -1 -1 1 20 -1 1 1 1 -1 1 1 -1 -1\n", ["line 3", "ten"]),
        (f"{SWF_LINE}\n2 0 5\n", ["line 2"]),
        (f"{SWF_LINE}\n{SWF_LINE}\n", ["line 2", "job number 1", "line 1"]),
        ("; only comments\n", ["contains no job"]),
    ],
)
def test_an_invalid_swf_line_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "w.swf").write_text(text)

    assert_rejected(batkube(*run(tmp_path, workload="w.swf"), cwd=tmp_path), tmp_path, "w.swf", *words)


def test_a_truncated_gzip_trace_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "w.swf.gz").write_bytes(gzip.compress(SWF_LINE.encode() * 50)[:60])

    assert_rejected(batkube(*run(tmp_path, workload="w.swf.gz"), cwd=tmp_path), tmp_path, "w.swf.gz")


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("missing.xml", ["missing.xml"]),
        ("broken.xml", ["broken.xml", "line 3"]),
        ("2 by 4", ["2 by 4", "remedy: "]),
        ("0x1", ["0x1"]),
    ],
)
def test_an_invalid_platform_is_rejected(tmp_path: Path, platform: str, words: list[str]) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))
    (tmp_path / "broken.xml").write_text('<platform version="4.1">\n<zone id="a"\n</platform>')

    assert_rejected(batkube(*run(tmp_path, platform=platform), cwd=tmp_path), tmp_path, *words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scheduler", "policy:eazy"], ["eazy", "easy"]),
        (["--scheduler", "kube-shedular@1.34.4"], ["kube-shedular@1.34.4", "kube-scheduler"]),
        (["--scheduler", "./absent-scheduler"], ["absent-scheduler", "no such program"]),
        (["--scheduler", "easy"], ["policy:easy"]),
        (["--scheduler", "policy:fcfs", "--scheduler-arg", "x=1"], ["x"]),
        (["--scheduler-arg", "x"], ["name=value"]),
        (["--time", "fast"], ["time", "'fast'", "exact"]),
        (["--resources", "cores"], ["resources", "machines, requests"]),
        (["--latencies", "l.yaml"], ["l.yaml"]),
    ],
)
def test_an_invalid_option_is_rejected(tmp_path: Path, options: list[str], words: list[str]) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))

    assert_rejected(batkube(*run(tmp_path, *options), cwd=tmp_path), tmp_path, *words)


def test_a_missing_required_option_is_named(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))

    assert_rejected(
        batkube("run", "--platform", "2x1", "--out", tmp_path / "out", cwd=tmp_path), tmp_path, "--workload"
    )
    assert_rejected(batkube("run", "--workload", "w.json", "--out", "out", cwd=tmp_path), tmp_path, "--platform")
    assert_rejected(batkube("run", "--workload", "w.json", "--platform", "2x1", cwd=tmp_path), tmp_path, "--out")
    assert_rejected(batkube(*run(tmp_path, workload="absent.json"), cwd=tmp_path), tmp_path, "absent.json")


def test_an_existing_run_is_replaced_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))
    assert batkube(*run(tmp_path), cwd=tmp_path).returncode == 0
    before = (tmp_path / "out" / "jobs.csv").read_bytes()

    rejected = batkube(*run(tmp_path, "--scheduler", "policy:sjf"), cwd=tmp_path)
    forced = batkube(*run(tmp_path, "--force"), cwd=tmp_path)

    assert (rejected.returncode, forced.returncode) == (2, 0)
    assert "exists already" in rejected.stderr
    assert (tmp_path / "out" / "jobs.csv").read_bytes() == before


def test_a_folder_that_is_not_a_run_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")

    result = batkube(*run(tmp_path, "--force"), cwd=tmp_path)

    assert result.returncode == 2
    assert "not the output of a run" in result.stderr
    assert (tmp_path / "out" / "thesis.tex").read_text() == "years of work"


def test_a_full_disk_prints_one_message_and_leaves_no_files(tmp_path: Path) -> None:
    """A limit on file sizes makes writes fail partway, as a full disk does."""
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(2000)]
    (tmp_path / "w.json").write_text(json.dumps({**VALID, "jobs": jobs}))

    def limit_file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    command = [sys.executable, "-m", "batkube", *map(str, run(tmp_path))]
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limit_file_size, check=False
    )

    assert_rejected(result, tmp_path, "cannot be written")


def test_an_unwritable_output_folder_prints_one_message(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))
    (tmp_path / "file").write_text("")

    for place in ("file/out", "/proc/batkube/out"):
        result = batkube("run", "--workload", "w.json", "--platform", "2x1", "--out", place, cwd=tmp_path)
        assert_rejected(result, tmp_path, "cannot be written")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- a list", ["scenario.yaml"]),
        ("workload: w.json\nplatfrom: 2x1\n", ["scenario.yaml", "platfrom", "platform"]),
        ("workload: w.json\nplatform: 2x1\nseed: soon\n", ["scenario.yaml", "seed"]),
        ("workload: w.json\nplatform: 16\n", ["scenario.yaml: platform", "16 is not a string"]),
        ("workload: {a: 1}\nplatform: 2x1\n", ["scenario.yaml: workload", "write a path"]),
        ("workload: w.json\nplatform: 2x1\nscheduler: [7]\n", ["scenario.yaml: scheduler"]),
        ("jobs: []\nprofiles: {}\n", ["scenario.yaml", "is a workload", "--workload"]),
        ("a: [1\n", ["scenario.yaml", "YAML"]),
    ],
)
def test_an_invalid_scenario_file_is_rejected(tmp_path: Path, content: str, words: list[str]) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))
    (tmp_path / "scenario.yaml").write_text(content)

    assert_rejected(batkube("run", "scenario.yaml", "--out", tmp_path / "out", cwd=tmp_path), tmp_path, *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [("pul: 1\n", ["pul", "pull"]), ("pull: sometimes\n", ["pull", "sometimes"]), ("3\n", ["latencies.yaml"])],
)
def test_an_invalid_latencies_file_is_rejected(tmp_path: Path, content: str, words: list[str]) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))
    (tmp_path / "latencies.yaml").write_text(content)

    assert_rejected(batkube(*run(tmp_path, "--latencies", "latencies.yaml"), cwd=tmp_path), tmp_path, *words)


def test_a_report_of_any_other_folder_is_rejected(tmp_path: Path) -> None:
    result = batkube("report", tmp_path, cwd=tmp_path)

    assert_rejected(result, tmp_path, "is not the output folder of a run or an experiment", "`batkube experiment`")


@pytest.mark.parametrize("command", [["run", "--workload", "w.json", "--platform", "2x1"], ["experiment", "e.yaml"]])
def test_an_output_folder_is_created_with_its_parents_and_rejected_below_a_file(
    tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "w.json").write_text(json.dumps(VALID))
    (tmp_path / "e.yaml").write_text("base: {workload: w.json, platform: 2x1}")

    below = batkube(*command, "--out", "w.json/below/out", "--quiet", cwd=tmp_path)
    created = batkube(*command, "--out", "new/parents/out", "--quiet", cwd=tmp_path)

    assert_rejected(below, tmp_path, "cannot be written", "w.json is not a folder")
    assert created.returncode == 0, created.stderr
    assert (tmp_path / "new" / "parents" / "out").is_dir()


def test_an_output_folder_without_write_permission_is_rejected_before_the_run(tmp_path: Path) -> None:
    with mock.patch("os.access", return_value=False):
        result = batkube(*run(tmp_path, workload="none.json"), cwd=tmp_path)

    assert_rejected(result, tmp_path, f"no permission to create files in {tmp_path}")
