"""Every option of a command that writes a workload is in the history of its output."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from batkube.cli.commands.workload import app
from batkube.cli.options.recorded_options import UNRECORDED
from batkube.workloads.formats.traces.swf import NO_RUN_TIME
from batkube.workloads.history import Step
from batkube.workloads.reader import read_workload

#: Eight jobs over 70 s on 8 processors, of two users, queues and partitions; one without walltime.
TRACE = "; MaxProcs: 8\n; Queue: 1 high\n" + "".join(
    f"{n} {10 * n} 0 {5 * n} {n} -1 -1 {n} {-1 if n == 3 else 600} -1 1 {n % 2} -1 -1 {n % 2} {n % 2} -1 -1\n"
    for n in range(1, 9)
)
#: For each option of `convert` that affects the content, words that make it effective.
CONVERT_EXAMPLES = {
    "--format": ["--format", "swf"],
    "--status": ["--status", "1"],
    "--machines": ["--machines", "16"],
    "--utilisation": ["--utilisation", "0.5", "--period", "15s", "--variation", "0.9"],
    "--period": ["--utilisation", "0.5", "--period", "15s", "--variation", "0.9"],
    "--variation": ["--utilisation", "0.5", "--period", "15s", "--variation", "0.9"],
    "--pick": ["--utilisation", "0.5", "--period", "15s", "--variation", "0.9", "--pick", "2"],
    "--from": ["--from", "20s"],
    "--to": ["--to", "50s"],
    "--min-size": ["--min-size", "2"],
    "--max-size": ["--max-size", "3"],
    "--user": ["--user", "1", "--user", "0"],
    "--queue": ["--queue", "high"],
    "--partition": ["--partition", "1"],
    "--drop-zero": ["--drop-zero"],
    "--first": ["--first", "2"],
    "--shift": ["--shift"],
    "--rate": ["--rate", "1.2"],
    "--compress": ["--compress", "2"],
    "--trim": ["--trim", "10s"],
    "--clip-size": ["--clip-size", "4"],
    "--cores-per-machine": ["--cores-per-machine", "2"],
    "--cpu-norm": ["--cpu-norm", "6"],
    "--cpu-max": ["--cpu-norm", "6", "--cpu-max", "5.9"],
    "--for": ["--for", "8x1", "--cannot-run", "drop"],
    "--cannot-run": ["--for", "8x1", "--cannot-run", "drop"],
    "--no-walltime": ["--no-walltime"],
    "--walltime-factor": ["--walltime-factor", "2"],
    "--walltime-from-runtime": ["--walltime-from-runtime", "2"],
    "--walltime-fill": ["--walltime-fill", "factor:2"],
    "--seed": ["--walltime-fill", "tsafrir", "--seed", "3"],
    "--raise-walltime": ["--raise-walltime"],
    "--scheduler": ["--scheduler", "volcano"],
}
RESAMPLE_EXAMPLES = {
    "--window": ["--window", "3jobs"],
    "--overlap": ["--window", "3jobs", "--no-overlap"],
    "--blocks": ["--blocks", "20s", "--length", "60s"],
    "--length": ["--blocks", "20s", "--length", "60s"],
    "--rate": ["--window", "3jobs", "--rate", "2"],
    "--machines": ["--window", "3jobs", "--machines", "9"],
    "--seed": ["--window", "3jobs", "--seed", "4"],
}


def options_of(command: str) -> list[str]:
    """Return the options of a command that affect the content of its output."""
    parameters = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    return [
        max(parameter.opts, key=len)
        for parameter in parameters
        if parameter.param_type_name == "option" and parameter.name not in UNRECORDED
    ]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.swf"
    path.write_text(TRACE)
    return path


def last_step(command: str, source: Path, target: Path, *words: str) -> Step:
    CliRunner().invoke(app, [command, str(source), "-o", str(target), *words], catch_exceptions=False)
    return read_workload(target).header.history[-1]


@pytest.mark.parametrize("option", options_of("convert"))
def test_every_option_of_convert_is_recorded(trace: Path, option: str) -> None:
    assert option in CONVERT_EXAMPLES, f"add an example of {option} to this test"
    words = CONVERT_EXAMPLES[option]
    step = last_step("convert", trace, trace.with_name("made.json"), *words)

    assert step.command == "batkube workload convert"
    assert sorted(step.options) == sorted(words)
    assert [source.sha256 for source in step.sources] == [hashlib.sha256(trace.read_bytes()).hexdigest()]


@pytest.mark.parametrize("option", options_of("resample"))
def test_every_option_of_resample_is_recorded(trace: Path, option: str) -> None:
    assert option in RESAMPLE_EXAMPLES, f"add an example of {option} to this test"
    step = last_step("resample", trace, trace.with_name("made.swf"), *RESAMPLE_EXAMPLES[option])

    assert sorted(step.options) == sorted(RESAMPLE_EXAMPLES[option])


def test_only_names_of_files_and_the_output_format_are_not_recorded() -> None:
    assert UNRECORDED == ("input", "output", "output_format", "force")


def test_a_generated_workload_has_its_generator_and_options(tmp_path: Path) -> None:
    words = ["generate", "spaced", "-o", str(tmp_path / "w.json"), "--jobs", "3", "--interval", "5s", "--seed", "9"]
    CliRunner().invoke(app, words, catch_exceptions=False)

    (step,) = read_workload(tmp_path / "w.json").header.history
    assert step.command_line == "batkube workload generate spaced --jobs 3 --seed 9 --interval 5s"
    assert step.sources == ()


def test_a_second_conversion_keeps_the_first_with_hashes_notes_and_numbers(trace: Path) -> None:
    trace.write_text(TRACE + "9 99 -1 -1 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1\n")  # without run time
    middle, last = trace.with_name("middle.json"), trace.with_name("last.swf")
    last_step("convert", trace, middle, "--walltime-from-runtime", "2", "--first", "4")
    last_step("convert", middle, last, "--clip-size", "2")

    first, second = read_workload(last).header.history
    assert first.changes == {"jobs left out": 4, "walltimes replaced": 3, "walltimes added": 1}
    assert first.notes == {f"once in the whole trace, of which a part was selected: {NO_RUN_TIME.message}": 1}
    assert second.changes == {"sizes changed": 2}
    assert second.sources[0].name == "middle.json"
    assert second.sources[0].sha256 == hashlib.sha256(middle.read_bytes()).hexdigest()


def test_the_platform_of_a_conversion_is_a_source(trace: Path) -> None:
    platform = trace.with_name("platform.yaml")
    node = "kind: Node\nmetadata: {name: n%d}\nstatus: {allocatable: {cpu: 1, memory: 1Gi, pods: 9}}\n"
    platform.write_text("---\n".join(node % number for number in range(8)))
    step = last_step("convert", trace, trace.with_name("o.swf"), "--for", str(platform), "--cannot-run", "drop")

    assert [source.name for source in step.sources] == ["trace.swf", "platform.yaml"]


def test_show_prints_the_history(trace: Path) -> None:
    made = trace.with_name("made.swf")
    last_step("convert", trace, made, "--rate", "2")
    text = CliRunner().invoke(app, ["show", str(made)]).stdout
    numbers = json.loads(CliRunner().invoke(app, ["show", str(made), "--json"]).stdout)

    digest = hashlib.sha256(trace.read_bytes()).hexdigest()
    line = f"step 1: batkube workload convert --rate 2 of trace.swf (SHA-256 {digest[:12]}): 8 jobs; 7 submission times"
    assert line in text
    assert numbers["history"][0]["options"] == ["--rate", "2"]
