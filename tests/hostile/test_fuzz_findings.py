"""Inputs that the fuzzer found to end in a traceback, or to take all memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.experiments.description.experiment_file import read_experiment
from batkube.kernel.errors import InputError
from batkube.kernel.instants import TooLong, duration
from batkube.outputs.files.manifest import read_manifest
from batkube.recording.log import read_log
from batkube.recording.replay import replay_of
from batkube.scenarios.files import read_scenario_file
from batkube.workloads.timeline.reader import read_events

SETTINGS = b'{"type":"settings","cluster":"c","namespace":"","key":""}\n'
NODE = b'{"type":"node","at":1,"name":"n"}\n'


def test_a_duration_of_any_size_is_an_error_of_the_user() -> None:
    with pytest.raises(TooLong):
        duration("1e99999999999")


@pytest.mark.parametrize(
    "keys", ["seeds: 9223372036854775808", "seeds: 1000000000", "repeats: 1000000000", "seeds: 2000\nrepeats: 2000"]
)
def test_an_experiment_of_too_many_runs_is_rejected(tmp_path: Path, keys: str) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(f"base: {{workload: w.json, platform: 1x1}}\n{keys}\n")

    with pytest.raises(InputError):
        read_experiment(path)


def test_a_scheduler_that_is_too_long_for_a_path_is_only_a_name(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"scheduler: {'x' * 300}\n")

    assert read_scenario_file(path)["scheduler"] == ["x" * 300]


def test_a_manifest_that_is_not_utf_8_is_none(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b'{"batkube": "\xa2"}')

    assert read_manifest(tmp_path) == {}


@pytest.mark.parametrize("content", [SETTINGS, SETTINGS + b'{"type":"\x8a"}\n', SETTINGS + NODE])
def test_a_recording_without_a_session_is_rejected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_bytes(content)

    with pytest.raises(InputError):
        replay_of(read_log(path), "recorded")


def test_deeply_nested_events_are_an_error_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "events.yaml"
    path.write_bytes(b"[" * 100_000)

    with pytest.raises(InputError, match="nested more than"):
        read_events(path)
