"""The help is for people."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from batkube.cli.app import command_line


@pytest.mark.parametrize("group", [[], ["workload"], ["schedulers"]])
def test_no_summary_of_a_command_is_cut(group: list[str]) -> None:
    told = CliRunner().invoke(command_line(), [*group, "--help"], terminal_width=80).output

    assert "Commands:" in told
    assert not [line for line in told.splitlines() if line.endswith(("...", "…")) and not line.startswith("Usage")]


@pytest.mark.parametrize("command", ["run", "emulate", "serve", "experiment", "schedulers build"])
def test_options_name_what_they_take_and_not_its_python_type(command: str) -> None:
    told = CliRunner().invoke(command_line(), [*command.split(), "--help"], terminal_width=80).output

    options = told.partition("Options:")[2]
    assert "--help" in options
    assert not [word for word in ("<str>", "<path>", "<list[", "<int", "<float>") if word in options]
