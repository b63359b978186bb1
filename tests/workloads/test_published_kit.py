"""The published extract of the KIT trace is reproduced exactly from its SWF file.

The flags are those of the how-to page. The published cpu values are shares of 6 cores with a maximum of 5.9, and not
of 5.9 cores: 600 of 1024 processors are 3.516 there, which is 6 · 600/1024 and not 5.9 · 600/1024.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from batkube.cli.commands.workload import app
from batkube.workloads.model import Job
from batkube.workloads.reader import read_workload


def convert(shared_data: Path, output: Path, *flags: str) -> list[Job]:
    source = shared_data / "batkube" / "KIT-10-80.swf"
    result = CliRunner().invoke(app, ["convert", str(source), "-o", str(output), *flags], catch_exceptions=False)
    assert result.exit_code == 0
    # The published file does not keep users.
    return [msgspec.structs.replace(job, user="", queue="", partition="") for job in read_workload(output).jobs]


COMMON = ("--shift", "--drop-zero", "--no-walltime", "--scheduler", "default")


@pytest.mark.parametrize(
    ("published", "flags"),
    [
        ("KIT_10h_80.json", ("--trim", "1h", "--cpu-norm", "6", "--cpu-max", "5.9")),
        ("KIT_10h_80_4cpu.json", ("--cpu-norm", "4")),
    ],
)
def test_the_published_extract_is_reproduced(
    shared_data: Path, tmp_path: Path, published: str, flags: tuple[str, ...]
) -> None:
    jobs = convert(shared_data, tmp_path / "kit.json", *COMMON, *flags)

    # All fields of the jobs are equal, except users, queues and partitions.
    assert jobs == read_workload(shared_data / "batkube" / "workloads" / published).jobs
    assert len(jobs) == 39
