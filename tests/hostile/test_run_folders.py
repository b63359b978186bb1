"""Run folders from others: `rerun` reads and writes no files that the folder must not name."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.commands import RUN, run_in_process, write_study

from batkube.outputs.files.confinement import is_confined, is_relative
from batkube.outputs.files.manifest import seal
from batkube.scenarios.keys import make_scenario
from batkube.simulation.preparation.input_files import input_files_of

CATALOGUE = "kube-scheduler: {about: x, command: [/bin/sh, -c, 'touch was-here'], clock: preload}\n"


@pytest.fixture
def strangers(tmp_path: Path) -> Path:
    """A folder with a packed run in `out`, as downloaded."""
    write_study(tmp_path)
    assert run_in_process(tmp_path, *RUN, "--pack").returncode == 0
    return tmp_path


def reseal(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((run / "manifest.json").read_bytes())
    change(manifest)
    del manifest["seal"]
    (run / "manifest.json").write_text(json.dumps(seal(manifest)))


def recorded(path: str, content: str, place: str) -> dict[str, object]:
    data = content.encode()
    return {"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "place": place}


def test_a_rerun_plants_no_file_outside_its_temporary_folder(strangers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This once made a link at ~/.config/batkube/schedulers.yaml, whose command the next run executed."""
    (strangers / "c.yaml").write_text(CATALOGUE)
    place = "../../../home/.config/batkube/schedulers.yaml"
    reseal(strangers / "out", lambda manifest: manifest["inputs"].append(recorded("gone.yaml", CATALOGUE, place)))
    (strangers / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(strangers / "tmp"))

    result = run_in_process(strangers, "rerun", "out")

    assert (result.returncode, "is not inside the folder of the run" in result.stderr) == (2, True)
    assert not (strangers / "home").exists()
    assert list((strangers / "tmp").iterdir()) == []


@pytest.mark.parametrize("place", ["/etc/passwd", "../x", "0/../../x", "0/./x", "0//x", "", ".", "0/x\0y", "0/"])
def test_a_recorded_path_must_be_relative_and_plain(place: str) -> None:
    assert not is_relative(place)


def test_a_link_in_a_folder_does_not_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "run" / "plain").mkdir(parents=True)
    (tmp_path / "run" / "link").symlink_to(tmp_path)
    (tmp_path / "run" / "inner").symlink_to("plain")
    (tmp_path / "secret").write_text("secret")

    places = ("link/secret", "plain/x", "inner/x")

    assert [is_confined(tmp_path / "run", place) for place in places] == [False, True, True]


def test_a_rerun_does_not_print_files_behind_links_of_the_folder(strangers: Path) -> None:
    (strangers / "secrets").mkdir()
    (strangers / "secrets" / "jobs.csv").write_text("a secret\n")
    (strangers / "out" / "link").symlink_to(strangers / "secrets")
    listing = {"bytes": 9, "sha256": hashlib.sha256(b"a secret\n").hexdigest()}
    reseal(
        strangers / "out", lambda manifest: manifest["files"].update({"link/jobs.csv": listing, "jobs.csv": listing})
    )

    result = run_in_process(strangers, "rerun", "out")

    assert (result.returncode, "secret" in result.stdout + result.stderr) == (1, False)


def test_a_rerun_does_not_read_a_packed_input_through_a_link(strangers: Path) -> None:
    (strangers / "elsewhere").mkdir()
    (strangers / "w.json").rename(strangers / "elsewhere" / "w.json")
    packed = strangers / "out" / "inputs" / "0" / "w.json"
    packed.unlink()
    packed.symlink_to(strangers / "elsewhere" / "w.json")

    result = run_in_process(strangers, "rerun", "out")

    assert (result.returncode, "cannot be repeated without" in result.stderr) == (2, True)


def test_a_rerun_reads_only_the_inputs_that_the_manifest_lists(strangers: Path) -> None:
    (strangers / "private.json").write_text((strangers / "w.json").read_text())
    reseal(strangers / "out", lambda manifest: manifest["scenario"].update(workload=[str(strangers / "private.json")]))

    result = run_in_process(strangers, "rerun", "out")

    assert (result.returncode, "which is not one of its inputs" in result.stderr) == (2, True)


def test_inputs_at_places_that_exclude_each_other_end_in_one_message(strangers: Path) -> None:
    workload = (strangers / "w.json").read_text()
    (strangers / "gone").mkdir()
    more = [recorded("gone/a", workload, "7/a"), recorded("gone/b", workload, "7/a/b")]
    reseal(strangers / "out", lambda manifest: manifest["inputs"].extend(more))

    result = run_in_process(strangers, "rerun", "out")

    assert (result.returncode, "two inputs cannot both be at" in result.stderr) == (2, True), result.stderr


def test_a_listed_file_outside_the_folder_makes_a_manifest_invalid(strangers: Path) -> None:
    reseal(strangers / "out", lambda manifest: manifest["files"].update({"../w.json": {"bytes": 1, "sha256": "0"}}))

    result = run_in_process(strangers, "rerun", "out")

    assert (result.returncode, "was edited" in result.stderr) == (2, True)


def test_a_pack_holds_all_files_that_a_workload_refers_to_by_paths_with_dots(tmp_path: Path) -> None:
    """A trace at ../../evil.yaml was once copied to a place outside the pack."""
    (tmp_path / "study" / "deep").mkdir(parents=True)
    (tmp_path / "evil.yaml").write_text("0 1 1\n")
    profiles = {"d": {"type": "usage_trace", "trace": "../../evil.yaml"}}
    workload = tmp_path / "study" / "deep" / "w.json"
    workload.write_text(json.dumps({"nb_res": 1, "jobs": [], "profiles": profiles}))

    files = input_files_of(make_scenario({"workload": str(workload), "platform": "1x1"}, "test"))

    assert [file.packed_path for file in files] == ["0/study/deep/w.json", "0/evil.yaml"]
