"""The help is for people."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from batkube.cli.app import build_app, help_only_app
from batkube.cli.commands.completion import command_shapes


@pytest.mark.parametrize("group", [[], ["workload"], ["schedulers"]])
def test_no_summary_of_a_command_is_cut(group: list[str]) -> None:
    told = CliRunner().invoke(build_app(), [*group, "--help"], env={"COLUMNS": "78"}).output

    assert "Commands:" in told
    assert not [line for line in told.splitlines() if line.endswith(("...", "…")) and not line.startswith("Usage")]


def test_who_names_no_command_sees_what_each_says_of_itself_and_none_is_loaded() -> None:
    listed, loaded = (CliRunner().invoke(app, ["--help"]).output for app in (help_only_app(), build_app()))
    program = "import sys, batkube.cli.invocation as cli; sys.argv[1:] = ['--help']; cli.invoke(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert listed == loaded
    assert "batkube.cli.app" in modules
    assert "batkube.simulation" not in modules


@pytest.mark.parametrize("command", ["run", "emulate", "serve", "experiment", "schedulers build"])
def test_options_name_what_they_take_and_not_its_python_type(command: str) -> None:
    told = CliRunner().invoke(build_app(), [*command.split(), "--help"], terminal_width=80).output

    options = told.partition("Options:")[2]
    assert "--help" in options
    assert not [word for word in ("<str>", "<path>", "<list[", "<int", "<float>") if word in options]


def test_no_help_shows_a_mark_that_was_meant_for_its_layout() -> None:
    """In a raw docstring a backspace is two characters, and the examples below it become one paragraph."""
    for place in command_shapes(typer.main.get_command(build_app())):
        told = CliRunner().invoke(build_app(), [*place.words, "--help"]).output
        assert "\\b" not in told, place.words


@pytest.mark.parametrize("command", ["", "run", "workload", "workload show", "schedulers build"])
def test_help_is_asked_for_by_one_letter_too(command: str) -> None:
    short, long = (CliRunner().invoke(build_app(), [*command.split(), option]) for option in ("-h", "--help"))

    assert short.exit_code == 0
    assert short.output == long.output


def test_an_error_shows_where_it_arose_only_if_that_is_asked_for(tmp_path: Path) -> None:
    words = ["run", "--workload", "absent.json", "--platform", "4x1", "--out", "out"]
    commands = [[sys.executable, "-m", "batkube", *options, *words] for options in ([], ["--traceback"])]
    plain, traced = (
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False) for command in commands
    )

    assert plain.returncode == traced.returncode == 2
    assert plain.stderr.startswith("error: ")
    assert traced.stderr.startswith("Traceback (most recent call last):")
    assert traced.stderr.endswith(plain.stderr)
