"""`batkube calibrate` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from batkube.cli.app import build_app
from batkube.execution.latencies.delays import read_latencies
from batkube.kernel.errors import InputError
from calibration.conftest import Write, recorded


def calibrate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["calibrate", *map(str, arguments)])


def refusal(*arguments: str | Path) -> str:
    """Return the message with which a call is refused."""
    result = calibrate(*arguments)
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


@pytest.fixture
def recording(write: Write) -> Path:
    return write("run_jobs.csv", recorded(nodes=5, waves=20))


def test_it_shows_a_table_and_writes_a_file_that_runs_take(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "latencies.yaml"

    result = calibrate(recording, "-o", out, "--nodes", "6")

    assert result.exit_code == 0
    for word in ("100 jobs of 1 recorded run", "notice.first", "check", "of 6 nodes", f"wrote {out}"):
        assert word in result.output.replace("\n", " ")
    assert read_latencies(out).check is not None


@pytest.mark.parametrize(("name", "begins"), [("fit.svg", b"<?xml"), ("fit.png", b"\x89PNG")])
def test_the_picture_of_the_fit_is_the_same_each_time(
    recording: Path, tmp_path: Path, name: str, begins: bytes
) -> None:
    pictures = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        calibrate(recording, "-o", tmp_path / folder / "l.yaml", "--plot", tmp_path / folder / name)
        pictures.append((tmp_path / folder / name).read_bytes())

    assert pictures[0].startswith(begins)
    assert pictures[0] == pictures[1]


def test_an_output_folder_is_as_good_as_its_file(recording: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "jobs.csv").write_bytes(recording.read_bytes())
    (folder / "manifest.json").write_text('{"platform": {"machines": [{"name": "a"}, {"name": "b"}]}}')

    result = calibrate(folder, "-o", tmp_path / "l.yaml")

    assert result.exit_code == 0
    assert "of 2 nodes" in result.output, "the manifest says so"


def test_wrong_use_is_refused_before_anything_is_written(recording: Path, tmp_path: Path) -> None:
    out, there = tmp_path / "l.yaml", tmp_path / "there.yaml"
    there.write_text("")

    assert "already exists" in refusal(recording, "-o", there)
    assert "does not exist" in refusal(recording, "-o", tmp_path / "no" / "l.yaml")
    assert ".svg, .png or .pdf" in refusal(recording, "-o", out, "--plot", tmp_path / "fit.doc")
    assert "'cauchy' is not one of constant, uniform" in refusal(recording, "-o", out, "--family", "cauchy")
    assert "'nap' is not a step" in refusal(recording, "-o", out, "--family", "nap=gamma")
    assert "does not exist" in refusal(tmp_path / "nowhere", "-o", out)
    assert not out.exists()
    assert there.read_text() == ""


def test_force_replaces_what_is_there(recording: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.yaml"
    there.write_text("old")

    assert calibrate(recording, "-o", there, "--force", "--family", "gamma").exit_code == 0
    assert "gamma:" in there.read_text()
