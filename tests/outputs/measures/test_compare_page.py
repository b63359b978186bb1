"""The example of docs/reference/cli-compare.md, as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from typer.testing import CliRunner

from batkube.cli.app import build_app


def test_the_pages_table_is_what_its_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "reference" / "cli-compare.md").read_text(encoding="utf-8")
    example = next(block for block in re.findall(r"```\n(.*?)```", page, re.DOTALL) if block.startswith("$ "))
    commands = re.findall(r"^\$ batkube (.*)$", example, re.MULTILINE)
    monkeypatch.chdir(tmp_path)

    done = [CliRunner().invoke(build_app(), shlex.split(command)) for command in commands]

    assert [one.exit_code for one in done] == [0, 0, 0, 0]
    printed = [line.rstrip() for line in done[-1].stdout.splitlines()]
    told = example.partition("$ batkube compare")[2].splitlines()[1:]
    assert [line for line in printed if line] == [line for line in told if line]
