"""The commands and their help."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

from batkube.cli.app import build_app, help_only_app
from batkube.cli.commands.completion import command_shapes


@pytest.mark.parametrize("group", [[], ["workload"], ["schedulers"]])
def test_no_command_summary_is_cut(group: list[str]) -> None:
    output = CliRunner().invoke(build_app(), [*group, "--help"], env={"COLUMNS": "78"}).output

    assert "Commands:" in output
    assert not [line for line in output.splitlines() if line.endswith(("...", "…")) and not line.startswith("Usage")]


def test_help_without_a_command_lists_all_commands_and_imports_none() -> None:
    without_imports, with_imports = (
        CliRunner().invoke(app, ["--help"]).output for app in (help_only_app(), build_app())
    )
    program = "import sys, batkube.cli.invocation as cli; sys.argv[1:] = ['--help']; cli.invoke(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert without_imports == with_imports
    assert "batkube.cli.app" in modules
    assert "batkube.simulation" not in modules


@pytest.mark.parametrize("command", ["run", "emulate", "serve", "experiment", "schedulers build"])
def test_options_have_metavars_instead_of_python_types(command: str) -> None:
    output = CliRunner().invoke(build_app(), [*command.split(), "--help"], terminal_width=80).output

    options = output.partition("Options:")[2]
    assert "--help" in options
    assert not [word for word in ("<str>", "<path>", "<list[", "<int", "<float>") if word in options]


def test_no_help_contains_the_marker_of_preformatted_text() -> None:
    r"""In a raw docstring `\b` is two characters, and the examples after it become one paragraph."""
    for command in command_shapes(typer.main.get_command(build_app())):
        output = CliRunner().invoke(build_app(), [*command.words, "--help"]).output
        assert "\\b" not in output, command.words


@pytest.mark.parametrize("command", ["", "run", "workload", "workload show", "schedulers build"])
def test_h_is_short_for_help(command: str) -> None:
    short, long = (CliRunner().invoke(build_app(), [*command.split(), option]) for option in ("-h", "--help"))

    assert short.exit_code == 0
    assert short.output == long.output
