"""The output of resource-query that is recorded in Fluxion's tests is reproduced byte for byte.

Counts of visited vertices are excluded: they depend on Fluxion's implementation, not on the match.
"""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest
from tests.opt_in import IS_ENABLED
from typer.testing import CliRunner

from batkube.cli.app import build_app
from batkube.graph import parse_jobspec
from batkube.kernel.errors import InputError

_COUNTS = re.compile(r'INFO: =+\n(?:INFO: (?:PARTIAL )?CANCEL (?:PRE|POST)ORDER COUNT="\d+"\n){2}INFO: =+\n')
#: Fluxion's test removes this suffix before it compares.
_SUFFIX = re.compile(r" \(vtx's uniq_id=\d+\)")
#: The cases with different output, by command script, and why.
DIFFERENCES = {
    "t/data/resource/commands/sibling/cmds02.in": "its graph is an hwloc file, which is not published with the cases",
    "t/data/resource/commands/sibling/cmds03.in": "its graph is an hwloc file, which is not published with the cases",
    "t/data/resource/commands/flexible/cmds06.in": "an unknown type is reported in our words, with its place",
}
#: Cases on systems so large that each run takes ten seconds or more.
_LARGE = ("LONGTEST", "17 jobs")


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "fluxion" / "index.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_at_most_one_case_in_twenty_is_listed_as_different(cases: list[dict[str, str]]) -> None:
    different = [case for case in cases if case["command_script"] in DIFFERENCES]

    assert 20 * len(different) <= len(cases)


@pytest.mark.parametrize("part", range(8))
def test_the_output_of_cases_is_equal_byte_for_byte(
    part: int, cases: list[dict[str, str]], shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared_data / "fluxion")
    runs = [case for case in cases[part::8] if IS_ENABLED or not any(word in case["description"] for word in _LARGE)]

    outputs = {str(case): _output(case, tmp_path) for case in runs if case["command_script"] not in DIFFERENCES}

    assert outputs
    for case in runs:
        if case["command_script"] not in DIFFERENCES:
            assert outputs[str(case)] == _COUNTS.sub("", Path(case["expected_file"]).read_text(encoding="utf-8")), case


def _output(case: dict[str, str], folder: Path) -> str:
    """Run a case and return its output: the file of -t, or else both streams."""
    file = folder / "output"
    words = shlex.split(case["resource_query_options"])
    if "-t" in words:
        words[words.index("-t") + 1] = str(file)
    script = Path(case["command_script"]).read_text(encoding="utf-8").replace("@TEST_SRCDIR@", "t")
    result = CliRunner().invoke(build_app("graph"), ["graph", "query", *words], input=script)
    text = file.read_text(encoding="utf-8") if "-t" in words else result.stdout
    if "-t" not in words or "check for unsupported" in case["description"]:
        text += result.stderr
    return _SUFFIX.sub("", _COUNTS.sub("", text))


def test_valid_jobspecs_are_parsed_and_invalid_ones_rejected_with_the_place(shared_data: Path) -> None:
    folder = shared_data / "fluxion" / "t" / "data" / "resource" / "jobspecs" / "validation"
    valid, invalid = sorted((folder / "valid").glob("*.yaml")), sorted((folder / "invalid").glob("*.yaml"))

    assert len(valid) > 10
    assert len(invalid) > 30
    for path in valid:
        assert parse_jobspec(path, path.read_bytes()).resources, path
    for path in invalid:
        with pytest.raises(InputError) as caught:
            parse_jobspec(path, path.read_bytes())
        assert caught.value.at, path
