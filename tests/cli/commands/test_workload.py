"""`batkube workload`."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import RUN, WORKLOAD, run_batkube
from typer.testing import CliRunner, Result

from batkube.cli.commands.workload import app
from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.reader import read_workload

SWF = "; MaxProcs: 4\n" + "".join(f"{n} {n} -1 5 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1\n" for n in range(1, 4))


def batkube_workload(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """An SWF trace of five jobs on 8 processors."""
    path = tmp_path / "trace.swf"
    rows = ((1, 100, 0, 50, 8, 60), (2, 110, 0, 0, 4, 60), (3, 120, 0, 500, 2, 600), (4, 130, 5, 30, 1, -1))
    lines = [
        f"{n} {submit} {wait} {run} {procs} -1 -1 {procs} {limit} -1 1 7 -1 -1 -1 -1 -1 -1\n"
        for n, submit, wait, run, procs, limit in rows
    ]
    path.write_text("; MaxProcs: 8\n" + "".join(lines))
    return path


def test_show_prints_every_number_of_the_summary(trace: Path) -> None:
    output = batkube_workload("show", trace).stdout

    for line in (
        "jobs 4",
        "users 1",
        "machine size 8",
        "span 30 s",
        "work 1,430 machine-seconds",
        "with walltime 3 of 4 jobs (75.0%)",
        "size (machines or pods) 1 3.75 3 8",
        "run time 0 s 2 min 25 s 40 s 8 min 20 s",
        "gap between submissions 10 s",
        "walltime / run time 1.2 1.2 1.2 1.2 0",
    ):
        assert any(" ".join(printed.split()).startswith(line) for printed in output.splitlines()), line


def test_show_prints_json_for_programs(trace: Path) -> None:
    numbers = json.loads(batkube_workload("show", trace, "--json").stdout)

    assert (numbers["jobs"], numbers["size"]["most"], numbers["work_ns"]) == (4, 8, 1430 * 10**9)
    assert numbers["offered_load"] == pytest.approx(1430 / (8 * 30))


def test_show_lists_the_skipped_jobs(tmp_path: Path) -> None:
    path = tmp_path / "t.swf"
    path.write_text("1 0 -1 5 1" + " -1" * 13 + "\n2 0 -1 -1 1" + " -1" * 13 + "\n")

    assert "no run time and is left out (once)" in batkube_workload("show", path).stderr


def test_convert_applies_its_options_in_the_order_of_the_help(trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"

    result = batkube_workload(
        "convert",
        trace,
        "-o",
        output,
        "--from=105",
        "--to=2m10s",
        "--drop-zero",
        "--first=5",
        "--shift",
        "--rate=2",
        "--trim=1m",
        "--cores-per-machine=2",
        "--walltime-from-runtime=1.5",
        "--scheduler=mine",
    )

    assert result.stdout == f"wrote 1 jobs to {output}\n"
    (job,) = read_workload(output).jobs
    assert (job.name, job.submit, job.size, job.scheduler, job.user) == ("3", 0, 1, "mine", "7")
    assert (job.profile.name, job.walltime) == ("delay500", seconds(90))


def test_convert_selects_a_period_by_its_utilisation(trace: Path, tmp_path: Path) -> None:
    # The machine: 8 of 8 from 100 to 150 (and 2 from 120 on, 1 from 135 to 165): over-allocated, as some traces are.
    result = batkube_workload(
        "convert", trace, "-o", tmp_path / "o.swf", "--utilisation=1.3", "--period=20s", "--variation=0.1"
    )

    # From 120 to 140: 8 + 2 processors, and 1 more for 5 of 20 seconds: 10.25 of 8.
    assert "period 2 min to 2 min 20 s of the trace, mean utilisation 1.2812, recorded" in result.stderr
    assert [job.name for job in read_workload(tmp_path / "o.swf").jobs] == ["3", "4"]


def test_convert_needs_the_machine_size_for_utilisation(trace: Path, tmp_path: Path) -> None:
    trace.write_text(trace.read_text().replace("; MaxProcs: 8\n", ""))
    flags = ("--utilisation=1.3", "--period=20s", "--variation=0.1")

    with pytest.raises(InputError, match="--machines"):
        batkube_workload("convert", trace, "-o", tmp_path / "o.swf", *flags)

    batkube_workload("convert", trace, "-o", tmp_path / "o.swf", *flags, "--machines=8")
    assert len(read_workload(tmp_path / "o.swf").jobs) == 2


def test_convert_normalises_cpu(trace: Path, tmp_path: Path) -> None:
    batkube_workload("convert", trace, "-o", tmp_path / "o.json", "--cpu-norm=4", "--cpu-max=3.5", "--no-walltime")

    jobs = read_workload(tmp_path / "o.json").jobs
    assert [dict(job.requests)["cpu"] for job in jobs] == [3500, 2000, 1000, 500]
    assert {(job.size, job.walltime) for job in jobs} == {(1, None)}


def test_convert_scales_walltimes(trace: Path, tmp_path: Path) -> None:
    batkube_workload("convert", trace, "-o", tmp_path / "o.json", "--walltime-factor=0.5")

    assert [job.walltime for job in read_workload(tmp_path / "o.json").jobs] == [
        seconds(30),
        seconds(30),
        seconds(300),
        None,
    ]


@pytest.mark.parametrize(("factor", "warns"), [("0.9", True), ("1", True), ("1.001", False)])
def test_show_warns_of_jobs_that_will_be_killed_at_their_walltime(
    trace: Path, tmp_path: Path, factor: str, warns: bool
) -> None:
    result = batkube_workload("convert", trace, "-o", tmp_path / "o.json", f"--walltime-from-runtime={factor}")

    assert (
        "warning: --walltime-from-runtime: a job whose run time equals its walltime is killed" in result.stderr
    ) == warns


def test_the_offered_load_of_a_generated_workload_is_unknown(tmp_path: Path) -> None:
    batkube_workload("generate", "spaced", "--jobs=5", "-o", tmp_path / "o.json")

    output = batkube_workload("show", tmp_path / "o.json").stdout

    assert "offered load not known" in " ".join(output.split())


def test_convert_notes_what_the_output_cannot_express(trace: Path, tmp_path: Path) -> None:
    result = batkube_workload("convert", trace, "-o", tmp_path / "o.swf", "--cpu-norm=4")

    assert "o.swf: SWF cannot express requests per pod: a job's are lost (4 times)" in result.stderr


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (["--trim=soon"], "--trim: 'soon' is not a duration"),
        (["--from=-5"], "--from: '-5' is negative"),
        (["--rate=fast"], "--rate: 'fast' is not a number"),
        (["--rate=0"], "must be larger than 0"),
        (["--rate=nan"], "not a number"),
        (["--cpu-norm=x"], "--cpu-norm: 'x' is not a quantity"),
        (["--cpu-max=1"], "--cpu-max: requires --cpu-norm"),
        (["--period=2h"], "--period: requires --utilisation"),
        (["--variation=0.1"], "--variation: requires --utilisation"),
        (["--pick=2"], "--pick: requires --utilisation"),
        (["--utilisation=80"], "--utilisation: is 80; utilisation is between 0 and 1; did you mean 0.8?"),
        (["--utilisation=-0.5"], "between 0 and 1"),
        (["--utilisation=nan"], "between 0 and 1"),
        (["--from=5h", "--to=2h"], "swap them: --from 2h --to 5h"),
        (["--no-walltime", "--walltime-factor=2"], "only one of"),
        (["--from=1h"], "no job is submitted in the time window"),
        (["--utilisation=0.5", "--period=1d"], "has 0 periods of 1 d"),
        (["--format=xml"], "'xml' is not a workload format"),
        (["--output-format=openb"], "no extension of a writable format"),
    ],
)
def test_an_invalid_option_is_rejected_and_nothing_is_written(
    trace: Path, tmp_path: Path, flags: list[str], part: str
) -> None:
    with pytest.raises(InputError) as error:
        batkube_workload("convert", trace, "-o", tmp_path / "o.json", *flags)

    assert part in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.swf"]


def test_an_existing_output_is_kept_without_force(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text("precious")

    with pytest.raises(InputError, match="--force"):
        batkube_workload("convert", trace, "-o", tmp_path / "o.json")
    assert (tmp_path / "o.json").read_text() == "precious"

    assert batkube_workload("convert", trace, "-o", tmp_path / "o.json", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "count", "last_s"),
    [
        (["burst", "--jobs=5", "--cpu=0.5", "--memory=1Gi", "--walltime=300"], 5, 0),
        (["spaced", "--jobs=5", "--interval=1m"], 5, 240),
        (["spaced", "--jobs=3"], 3, 20),
    ],
)
def test_generate_writes_the_requested_workload(tmp_path: Path, arguments: list[str], count: int, last_s: int) -> None:
    batkube_workload("generate", *arguments, "-o", tmp_path / "o.json")

    jobs = read_workload(tmp_path / "o.json").jobs
    assert (len(jobs), jobs[-1].submit) == (count, seconds(last_s))
    assert {job.profile.name for job in jobs} == {"delay170"}


@pytest.mark.parametrize(
    "arguments",
    [["poisson", "--rate=0.1", "--run-time=exponential:60", "--size=choice:1,2,4"], ["lublin", "--machines=64"]],
)
def test_generating_twice_with_one_seed_gives_the_same_bytes(tmp_path: Path, arguments: list[str]) -> None:
    for name, seed in (("a.json", 1), ("b.json", 1), ("c.json", 2)):
        batkube_workload("generate", *arguments, "--jobs=100", "--seed", seed, "-o", tmp_path / name)

    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert (tmp_path / "a.json").read_bytes() != (tmp_path / "c.json").read_bytes()


def test_poisson_accepts_a_mean_interval_instead_of_a_rate(tmp_path: Path) -> None:
    for name, flag in (("a.swf", "--rate=0.1"), ("b.swf", "--interval=10s")):
        batkube_workload("generate", "poisson", flag, "-o", tmp_path / name)

    assert read_workload(tmp_path / "a.swf").jobs == read_workload(tmp_path / "b.swf").jobs


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["storm"], "storm: is not a generator\n  remedy: known: burst, spaced, poisson, lublin"),
        (["lubin"], "did you mean 'lublin'?"),
        (["poisson"], "one of --rate and --interval"),
        (["poisson", "--rate=1", "--interval=1"], "one of --rate and --interval"),
        (["poisson", "--rate=0"], "arrival rate"),
        (["poisson", "--interval=0"], "longer than 0"),
        (["burst", "--interval=5"], "--interval: is not an option of burst"),
        (["lublin", "--cpu=1"], "--cpu: is not an option of lublin"),
        (["spaced", "--by-type"], "--by-type: is not an option of spaced"),
        (["burst", "--run-time=long"], "--run-time: 'long' is not a distribution"),
        (["burst", "--memory=much"], "--memory: 'much' is not a quantity"),
        (["burst", "--run-time=-5"], "--run-time: -5 is too small"),
        (["burst", "--run-time=choice:5,-1"], "--run-time: -1 is too small"),
        (["burst", "--size=0"], "--size: 0 is too small"),
        (["burst", "--cpu=-1"], "--cpu: -1 is too small"),
        (["burst", "--walltime=0"], "--walltime: 0 is too small"),
    ],
)
def test_an_invalid_option_of_a_generator_is_rejected(tmp_path: Path, arguments: list[str], part: str) -> None:
    with pytest.raises(InputError) as error:
        batkube_workload("generate", *arguments, "-o", tmp_path / "o.json")

    assert part in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_output_is_a_usage_error(trace: Path) -> None:
    assert batkube_workload("convert", trace).exit_code == 2


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--min-size", 2], ["1", "2", "3"]),
        (["--max-size", 4], ["2", "3", "4"]),
        (["--min-size", 2, "--max-size", 4], ["2", "3"]),
        (["--user", 7], ["1", "2", "3", "4"]),
        (["--queue", 2, "--queue", 3], ["3", "4"]),
    ],
)
def test_jobs_are_selected_by_size_user_and_queue(
    trace: Path, tmp_path: Path, options: list[object], names: list[str]
) -> None:
    rows = [line.split() for line in trace.read_text().splitlines()[1:]]
    for row, queue in zip(rows, "1123", strict=True):
        row[14] = queue
    trace.write_text("; MaxProcs: 8\n" + "".join(" ".join(row) + "\n" for row in rows))

    result = batkube_workload("convert", trace, "-o", tmp_path / "selected.json", *options)

    assert result.exit_code == 0
    jobs = read_workload(tmp_path / "selected.json").jobs
    assert [job.name for job in jobs] == names
    assert [job.queue for job in jobs] == ["1123"[int(name) - 1] for name in names], "queues are kept"


def test_a_filter_without_matching_jobs_is_an_error(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no job matches the size, user, queue and partition"):
        batkube_workload("convert", trace, "-o", tmp_path / "x.json", "--user", "nobody")


def test_clipped_sizes_and_raised_walltimes_are_noted(trace: Path, tmp_path: Path) -> None:
    trace.write_text(trace.read_text().replace(" 60 -1", " 50 -1"))
    out = tmp_path / "x.json"

    result = batkube_workload("convert", trace, "-o", out, "--clip-size", 3, "--raise-walltime")

    jobs = {job.name: job for job in read_workload(out).jobs}
    assert [jobs[name].size for name in "1234"] == [3, 3, 2, 1]
    assert [jobs[name].walltime for name in "1234"] == [seconds(51), seconds(50), seconds(600), None]
    assert "was reduced to it (2 times)" in result.output
    assert "was raised above it (once)" in result.output
    assert "here it is killed" not in result.output


def test_swf_output_with_fractional_seconds_has_a_note(trace: Path, tmp_path: Path) -> None:
    whole = batkube_workload("convert", trace, "-o", tmp_path / "whole.swf")
    parts = batkube_workload("convert", trace, "-o", tmp_path / "parts.swf", "--compress", 4)

    assert "whole seconds" not in whole.output
    # Of 100, 102.5, 105 and 107.5 s two are whole, and so are their walltimes; a run time of 12.5 s is not.
    assert "SWF times are whole seconds: a job's have decimals, which some readers reject (3 times)" in parts.output


@pytest.mark.parametrize("content", [SWF.encode(), gzip.compress(SWF.encode())], ids=["plain", "gzipped"])
def test_a_workload_is_read_from_standard_input(tmp_path: Path, content: bytes) -> None:
    command = [sys.executable, "-m", "batkube", "workload", "show", "-", "--json"]
    result = subprocess.run(command, cwd=tmp_path, input=content, capture_output=True, check=False)

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["jobs"] == 3


def test_standard_input_needs_a_format_and_cannot_be_the_workload_of_a_run(tmp_path: Path) -> None:
    content = json.dumps(WORKLOAD)
    show = [sys.executable, "-m", "batkube", "workload", "show", "-"]
    unnamed, named = (
        subprocess.run([*show, *more], input=content, capture_output=True, text=True, check=False)
        for more in ([], ["--format", "batsim"])
    )
    run = run_batkube(tmp_path, *RUN, "--workload", "-")

    assert (unnamed.returncode, "name the format" in unnamed.stderr) == (2, True)
    assert named.returncode == 0, named.stderr
    assert (run.returncode, "standard input cannot be read again" in run.stderr) == (2, True)


def test_a_trace_without_recorded_waits_is_noted_and_its_utilisation_is_offered(tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(
        "; MaxProcs: 4\n" + "".join(f"{n} {n} -1 5 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1\n" for n in range(1, 60))
    )
    arguments = ("convert", tmp_path / "t.swf", "-o", tmp_path / "o.swf", "--utilisation", "1")
    converted = batkube_workload(*arguments, "--period", "10s", "--variation", "1")

    assert "all wait times are -1" in batkube_workload("show", tmp_path / "t.swf").stderr
    assert "offered (the file has no recorded starts)" in converted.stderr
