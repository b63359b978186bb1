"""The five commands of docs/how-to/from-trace-to-paper.md, as they stand there."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "how-to" / "from-trace-to-paper.md").read_text(encoding="utf-8")
TRACE, PLATFORM = "KTH-SP2-1996-2.swf", "100x1"


def block(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None
    return match[1]


def do(folder: Path, trace: str, platform: str, besides: str = "") -> list[subprocess.CompletedProcess[str]]:
    """Write the two files of the page, and run its commands on another trace; LaTeX only where there is one."""
    assert TRACE in block("sh")
    assert PLATFORM in block("yaml")
    (folder / "paper.yaml").write_text(block("yaml").replace(PLATFORM, platform), encoding="utf-8")
    (folder / "paper.tex").write_text(block("latex"), encoding="utf-8")
    results = []
    for line in block("sh").replace(TRACE, trace).splitlines():
        words = shlex.split(line)
        if words[0] == "batkube":
            words[:1] = [sys.executable, "-m", "batkube"]
            words += shlex.split(besides) if "convert" in words else []
        elif shutil.which(words[0]) is None:
            continue
        result = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
        assert result.returncode == 0, f"{line}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
        results.append(result)
    return results


def check(folder: Path) -> None:
    """See that the table tells of ten workloads and three schedulers, and that LaTeX set it."""
    latex = (folder / "tables" / "results.tex").read_text(encoding="utf-8")
    lines = [line for line in latex.splitlines() if line.startswith(("FCFS", "EASY", "conservative"))]
    assert [line.split("&")[1].strip() for line in lines] == ["10", "10", "10"]
    with (folder / "tables" / "differences.csv").open(encoding="utf-8") as file:
        waits = [row for row in csv.DictReader(file) if row["column"] == "mean_waiting_time"]
    assert [(row["scheduler"], row["less"]) for row in waits] == [
        ("EASY", "FCFS"),
        ("conservative", "FCFS"),
        ("conservative", "EASY"),
    ]
    assert float(waits[0]["difference"]) < 0
    assert (folder / "figures" / "02-distribution-of-wait.pdf").is_file()
    assert (folder / "paper.pdf").is_file() or shutil.which("pdflatex") is None


def test_five_commands_lead_from_a_generated_trace_to_a_table(tmp_path: Path) -> None:
    assert len(block("sh").splitlines()) == 5
    words = "workload generate lublin --jobs 2000 --machines 64 --seed 1 -o trace.swf"
    command = [sys.executable, "-m", "batkube", *shlex.split(words)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)

    results = do(tmp_path, "trace.swf", "64x1", "--walltime-from-runtime 1.5")

    assert re.search(r"machine size\s+64", results[0].stdout)
    check(tmp_path)


@pytest.mark.parametrize(
    ("name", "platform", "besides"),
    [
        (TRACE, PLATFORM, ""),
        ("SDSC-SP2-1998-first5000lines.swf", "128x1", ""),
        ("HPC2N-2002-2.1-cln.swf.gz", "240x1", "--first 20000"),
    ],
)
def test_five_commands_lead_from_a_trace_of_the_archive_to_a_table(
    name: str, platform: str, besides: str, shared_data: Path, tmp_path: Path
) -> None:
    (tmp_path / name).symlink_to(shared_data / "swf" / name)

    do(tmp_path, name, platform, besides)

    check(tmp_path)
