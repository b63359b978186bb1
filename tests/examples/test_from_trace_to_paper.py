"""The five commands of docs/how-to/from-trace-to-paper.md, unchanged."""

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
HEAD, _, REST = PAGE.partition("\n## ")
#: What the page states about each trace, by its name.
SECTIONS = {text.partition("\n")[0]: text for text in REST.split("\n## ")}


def block(language: str, text: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert match is not None
    return match[1]


def description(section: str) -> str:
    """Return paper.yaml of the page, with the lines that a section changes."""
    text = block("yaml", HEAD)
    for line in block("yaml", section).splitlines() if "```yaml" in section else ():
        key = line.partition(":")[0]
        text, count = re.subn(rf"^{key}:.*$", line, text, flags=re.MULTILINE)
        assert count == 1, line
    return text


def do(folder: Path, section: str, experiment: str = "") -> list[subprocess.CompletedProcess[str]]:
    """Write the two files of the page, unless one is given, and run a section's commands; LaTeX where there is one."""
    commands = block("sh", section)
    assert len(commands.splitlines()) == 5
    (folder / "paper.yaml").write_text(experiment or description(section), encoding="utf-8")
    (folder / "paper.tex").write_text(block("latex", HEAD), encoding="utf-8")
    results = []
    for line in commands.splitlines():
        words = shlex.split(line)
        if words[0] == "batkube":
            words[:1] = [sys.executable, "-m", "batkube"]
        elif shutil.which(words[0]) is None:
            continue
        result = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
        assert result.returncode == 0, f"{line}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
        results.append(result)
    return results


def check(folder: Path) -> None:
    """Check that the table has ten workloads and three schedulers, and that LaTeX accepts it."""
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
    words = "workload generate lublin --jobs 1200 --machines 100 --seed 1 -o trace.swf"
    command = [sys.executable, "-m", "batkube", *shlex.split(words)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    section = SECTIONS["KTH-SP2"].replace("--shift", "--shift --walltime-from-runtime 1.5")
    smaller = description(section).replace("400 jobs", "100 jobs")

    results = do(tmp_path, section.replace("KTH-SP2-1996-2.swf", "trace.swf"), smaller)

    assert re.search(r"machine size\s+100", results[0].stdout)
    check(tmp_path)
    assert "have jobs in common" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("section", "name", "counts"),
    [
        ("KTH-SP2", "KTH-SP2-1996-2.swf", ["513 jobs"]),
        ("SDSC-SP2", "SDSC-SP2-1998-first5000lines.swf", ["355", "1,081", "4,606"]),
        ("HPC2N", "HPC2N-2002-2.1-cln.swf.gz", ["202,876"]),
    ],
)
def test_five_commands_lead_from_a_trace_of_the_archive_to_a_table(
    section: str, name: str, counts: list[str], shared_data: Path, tmp_path: Path
) -> None:
    (tmp_path / name).symlink_to(shared_data / "swf" / name)

    output = do(tmp_path, SECTIONS[section])[0]

    check(tmp_path)
    for count in counts:
        assert count in SECTIONS[section]
        assert count in output.stdout + output.stderr
