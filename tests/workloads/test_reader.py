"""Detection of the format, and files that are not workloads."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.workloads.reader import read_workload

SWF_LINE = "1 0 -1 10 2 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
BATSIM = '{"jobs":[{"id":"1","subtime":0,"res":2,"profile":"d"}],"profiles":{"d":{"type":"delay","delay":10}}}'


def test_the_extension_determines_the_format_unless_an_option_overrides_it(tmp_path: Path) -> None:
    (tmp_path / "a.SWF").write_text(SWF_LINE)
    (tmp_path / "b.json").write_text(BATSIM)
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(BATSIM.encode()))
    (tmp_path / "d.data").write_text(BATSIM)
    (tmp_path / "e.txt").write_text("; a trace\n" + SWF_LINE)

    for name, format in (("a.SWF", None), ("b.json", None), ("c.json.gz", None), ("d.data", "batsim"), ("e.txt", None)):
        assert [job.size for job in read_workload(tmp_path / name, format=format).jobs] == [2]


def test_a_file_of_unknown_format_is_rejected_with_the_list_of_formats(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one two three\n")

    with pytest.raises(InputError) as error:
        read_workload(path)

    assert error.value.remedy is not None
    for format in ("batsim (.json)", "swf (.swf)", "manifests (.yaml, .yml)", "openb (.csv)"):
        assert format in error.value.remedy


def test_an_unknown_format_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(BATSIM)

    with pytest.raises(InputError, match="'xml' is not a workload format"):
        read_workload(tmp_path / "a.json", format="xml")


@pytest.mark.parametrize("name", ["a.json", "a.swf", "a.yaml", "a.csv", "a.txt"])
def test_a_missing_file_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_workload(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.swf", "a.yaml", "a.csv", "a"])
def test_a_directory_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(InputError, match="is a directory"):
        read_workload(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.swf", "a.yaml", "a.csv", "a.txt"])
@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 4], ids=["empty", "binary"])
def test_an_empty_or_binary_file_is_rejected_whatever_its_extension(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(InputError):
        read_workload(tmp_path / name)


@pytest.mark.parametrize("name", ["empty.json", "empty.swf", "empty.yaml", "empty.csv", "empty.txt"])
def test_an_empty_file_is_rejected_as_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()

    with pytest.raises(InputError, match=f"{name}: is empty$"):
        read_workload(tmp_path / name)


@pytest.mark.parametrize(
    "header",
    [
        "job_id,workload_name,profile,submission_time,final_state",
        "pod,job_id,workload_name,node",
        "batsim_version,makespan,nb_jobs",
        "time,nb_sleeping,nb_idle,nb_computing",
    ],
)
def test_the_output_of_a_run_is_rejected_as_a_workload(tmp_path: Path, header: str) -> None:
    (tmp_path / "jobs.csv").write_text(f"{header}\n1,2,3,4\n")

    with pytest.raises(InputError, match="is the output of a run and not a workload"):
        read_workload(tmp_path / "jobs.csv")


@pytest.mark.parametrize("name", ["", "w!0"])
def test_a_workload_cannot_have_a_name_that_breaks_job_identities(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_text(BATSIM)

    with pytest.raises(InputError, match="cannot be named"):
        read_workload(tmp_path / "a.json", name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.swf", SWF_LINE * 2),
        ("a.csv", "name,cpu_milli\n"),
        ("b.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,pod_phase,creation_time,deletion_time,"
            "scheduled_time\n,1,1,1,1,,Running,0,1,0\n"),
        ("a.json", "{"),
        ("a.yaml", "kind: ["),
        ("a.txt", "one two"),
    ],
)  # fmt: skip
def test_a_rejected_file_is_closed_at_once(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)

    # The exception keeps the frames of the reader alive.
    with pytest.raises(InputError) as error:
        read_workload(path)

    assert error.value is not None
    assert path.resolve() not in {entry.resolve() for entry in Path("/proc/self/fd").iterdir()}


OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,pod_phase,creation_time,deletion_time,scheduled_time\n"
POD = """
kind: Pod
metadata: {{name: "{name}", annotations: {{batkube.io/duration: "9", batkube.io/user: "{user}"}}}}
spec: {{containers: [{{}}]}}
"""


@pytest.mark.parametrize(
    ("name", "content", "at"),
    [
        *(("a.json", BATSIM.replace('"id":"1"', f'"id":"1{bad}"'), "jobs[0].id") for bad in (r"\r", r"\n", r"\u0000")),
        ("a.json", BATSIM.replace('"id":"1"', r'"id":"1\u2028"'), "jobs[0].id"),
        ("a.json", BATSIM.replace('"res"', r'"user":"a\rb","res"'), "jobs[0].user"),
        ("a.json", BATSIM.replace('"d"', r'"d\r"'), "profiles"),
        ("a.swf", SWF_LINE.replace("1 0", "1\x00 0", 1), "line 1"),
        ("a.swf", "; a trace\n" + SWF_LINE.replace(" 1 -1", " 1 \x1b1", 1), "line 2"),
        ("a.yaml", POD.format(name=r"a\rb", user="u"), "metadata.name"),
        ("a.yaml", POD.format(name="a", user=r"u\0"), "batkube.io/user"),
        ("a.csv", OPENB + '"a\nb",1,1,0,0,,Running,0,1,0\n', "line 3"),
    ],
)
def test_a_name_with_a_control_character_is_rejected_with_its_place(
    tmp_path: Path, name: str, content: str, at: str
) -> None:
    (tmp_path / name).write_text(content)

    with pytest.raises(InputError, match="control character") as error:
        read_workload(tmp_path / name)

    assert at in (error.value.at or "")


def test_a_name_may_contain_any_printable_character(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(BATSIM.replace('"id":"1"', '"id":"été, \\"1\\" 日"'))

    assert read_workload(tmp_path / "a.json").jobs[0].name == 'été, "1" 日'
