"""The command `batkube calibrate`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from batkube.cli.app import build_app
from batkube.execution.latencies.delays import read_latencies
from batkube.kernel.errors import InputError
from calibration.conftest import Write, recorded_rows


def calibrate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["calibrate", *map(str, arguments)])


def error_of(*arguments: str | Path) -> str:
    """Return the error message of a call."""
    result = calibrate(*arguments)
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


@pytest.fixture
def recording(write: Write) -> Path:
    return write("run_jobs.csv", recorded_rows(nodes=5, waves=20))


def test_it_prints_a_table_and_writes_a_latencies_file(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "latencies.yaml"

    result = calibrate(recording, "-o", out, "--nodes", "6")

    assert result.exit_code == 0
    for word in ("100 jobs of 1 recorded run", "notice.first", "check", "of 6 nodes", f"wrote {out}"):
        assert word in result.output.replace("\n", " ")
    assert read_latencies(out).check is not None


@pytest.mark.parametrize(("name", "start"), [("fit.svg", b"<?xml"), ("fit.png", b"\x89PNG")])
def test_the_plot_of_the_fit_is_reproducible(recording: Path, tmp_path: Path, name: str, start: bytes) -> None:
    images = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        calibrate(recording, "-o", tmp_path / folder / "l.yaml", "--plot", tmp_path / folder / name)
        images.append((tmp_path / folder / name).read_bytes())

    assert images[0].startswith(start)
    assert images[0] == images[1]


def test_an_output_folder_is_accepted(recording: Path, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "jobs.csv").write_bytes(recording.read_bytes())
    (folder / "manifest.json").write_text('{"platform": {"machines": [{"name": "a"}, {"name": "b"}]}}')

    result = calibrate(folder, "-o", tmp_path / "l.yaml")

    assert result.exit_code == 0
    assert "of 2 nodes" in result.output, "the number of nodes in the manifest"


def test_usage_errors_are_reported_before_anything_is_written(recording: Path, tmp_path: Path) -> None:
    out, existing = tmp_path / "l.yaml", tmp_path / "existing.yaml"
    existing.write_text("")

    assert "already exists" in error_of(recording, "-o", existing)
    assert "does not exist" in error_of(recording, "-o", tmp_path / "no" / "l.yaml")
    assert ".svg, .png or .pdf" in error_of(recording, "-o", out, "--plot", tmp_path / "fit.doc")
    assert "'cauchy' is not one of constant, uniform" in error_of(recording, "-o", out, "--family", "cauchy")
    assert "'nap' is not a step" in error_of(recording, "-o", out, "--family", "nap=gamma")
    assert "does not exist" in error_of(tmp_path / "nowhere", "-o", out)
    assert not out.exists()
    assert existing.read_text() == ""


def test_force_replaces_an_existing_file(recording: Path, tmp_path: Path) -> None:
    existing = tmp_path / "existing.yaml"
    existing.write_text("old")

    assert calibrate(recording, "-o", existing, "--force", "--family", "gamma").exit_code == 0
    assert "gamma:" in existing.read_text()
