"""`batkube graph query` executes commands and prints what resource-query prints."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from batkube.cli.app import build_app

MATCH = """\
      ---------core0[1:x]
      ---------core1[1:x]
      ------node0[1:s]
      ---cluster0[1:s]
INFO: =============================
INFO: JOBID=1
INFO: RESOURCES=ALLOCATED
INFO: SCHEDULED AT=Now
INFO: =============================
"""
RESERVED = "INFO: RESOURCES=RESERVED\nINFO: SCHEDULED AT=600\n"


def query(graph: Path, commands: str, *options: str) -> str:
    words = ["graph", "query", "-L", str(graph), "-f", "jgf", "-P", "low", *options]
    result = CliRunner().invoke(build_app("graph"), words, input=commands)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_match_is_printed_as_by_resource_query(graph_file: Path, jobspec_file: Path) -> None:
    assert query(graph_file, f"match allocate {jobspec_file}\nquit\n") == MATCH


def test_a_full_graph_yields_a_reservation_and_a_cancelled_job_frees_its_cores(
    graph_file: Path, jobspec_file: Path
) -> None:
    line = f"match allocate_orelse_reserve {jobspec_file}\n"

    without_cancel = query(graph_file, 5 * line)
    with_cancel = query(graph_file, 4 * line + "cancel 1\n" + line)

    assert RESERVED in without_cancel
    assert RESERVED not in with_cancel
    assert with_cancel.count("core0[1:x]") == 3


def test_an_unknown_type_in_a_jobspec_is_reported_with_its_place(graph_file: Path, jobspec_file: Path) -> None:
    text = jobspec_file.read_text(encoding="utf-8").replace("type: core", "type: corn")
    jobspec_file.write_text(text, encoding="utf-8")
    words = ["graph", "query", "-L", str(graph_file), "-f", "jgf"]

    result = CliRunner().invoke(build_app("graph"), words, input=f"match allocate {jobspec_file}\n")

    assert result.exit_code == 2
    assert "resources[0].with[0].with[0]: the type 'corn'" in result.stderr
    assert "Traceback" not in result.stderr
