"""Completion scripts, executed by the shells."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import typer.main
from tests.commands import run_in_process

from batkube.cli.app import build_app
from batkube.cli.commands.completion import command_shapes

SWF = "; MaxProcs: 4\n" + "".join(f"{n} {n} -1 5 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1\n" for n in range(1, 4))


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the completion scripts, named after their shells."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        result = run_in_process(folder, "completion", shell)
        assert result.returncode == 0, result.stderr
        (folder / shell).write_text(result.stdout)
    return folder


#: Control codes that move the cursor, set colours or ring the bell.
_CONTROLS = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|\x07|.\x08")


class Terminal:
    """A shell on a pseudo-terminal."""

    def __init__(self, command: list[str], cwd: Path) -> None:
        self._pid, self._screen = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            os.environ.update({"PS1": "$ ", "TERM": "xterm", "INPUTRC": "/dev/null"})
            os.execvp(command[0], command)

    def type(self, keys: str, expected: str) -> str:
        """Send `keys`, and return the output once it contains `expected`, or after 30 s."""
        os.write(self._screen, keys.encode())
        output, deadline = "", time.monotonic() + 30
        while expected not in _CONTROLS.sub("", output) and time.monotonic() < deadline:
            if select.select([self._screen], [], [], 0.2)[0]:
                output += os.read(self._screen, 65536).decode(errors="replace")
        return _CONTROLS.sub("", output)

    def close(self) -> None:
        os.close(self._screen)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("batkube workl\t", "batkube workload "),
        ("batkube workload sh\t", "batkube workload show "),
        ("batkube report out --form\t", "batkube report out --format "),
        ("batkube report --format pd\t", "batkube report --format pdf "),
        ("batkube run --scheduler policy:eas\t", "--scheduler policy:easy "),
        ("batkube run --no-det\t", "batkube run --no-deterministic "),
        ("batkube -v workload gen\t", "batkube -v workload generate "),
        ("batkube run --workload tra\t", "batkube run --workload trace.swf "),
        ("batkube report --format=pd\t", "batkube report --format=pdf "),
        ("batkube chart qu\t", "batkube chart queue "),
        ("batkube chart --width column qu\t", "batkube chart --width column queue "),
        ("batkube chart queue tra\t", "batkube chart queue trace.swf "),
        ("batkube workload generate lu\t", "batkube workload generate lublin "),
        ("batkube schedulers build volc\t", "batkube schedulers build volcano"),
        ("batkube run --scheduler policy:easy --no-det\t", "policy:easy --no-deterministic "),
    ],
)
def test_bash_completes_the_word(scripts: Path, tmp_path: Path, keys: str, line: str) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    try:
        terminal.type(f"source {scripts / 'bash'}; echo rea''dy\n", "ready")
        assert line in terminal.type(keys, line)
    finally:
        terminal.close()


def test_bash_offers_the_choices_of_an_argument_and_no_files(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    try:
        terminal.type(f"source {scripts / 'bash'}; echo rea''dy\n", "ready")
        choices = terminal.type("batkube chart \t\t", "states")
        other = terminal.type("\x15batkube chart tra\t\techo no''ne\n", "none")
    finally:
        terminal.close()

    assert re.search(r"free\s+queue\s+states", choices)
    assert "trace.swf" not in choices + other


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("batkube workload s", ["show"]),
        ("batkube report --format pd", ["pdf"]),
        ("batkube report --format ", ["pdf", "pgf", "png", "svg"]),
        ("batkube run --no-d", ["--no-deterministic"]),
        ("batkube chart ", ["free", "queue", "states"]),
        ("batkube chart --width column ", ["free", "queue", "states"]),
        ("batkube chart states tra", ["trace.swf"]),
        ("batkube completion ", ["bash", "fish", "zsh"]),
        ("batkube workload generate ", ["burst", "lublin", "poisson", "spaced"]),
        ("batkube policies ", []),
        ("batkube run tra", ["trace.swf"]),
        ("batkube run --scheduler tra", ["trace.swf"]),
        ("batkube run --scheduler policy:eas", ["policy:easy"]),
    ],
)
def test_fish_offers_only_possible_words(scripts: Path, tmp_path: Path, line: str, words: list[str]) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    command = ["fish", "-N", "-c", f"source {scripts / 'fish'}; complete -C '{line}'"]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert sorted(row.partition("\t")[0] for row in output.splitlines()) == words


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("batkube workload sh\t", "batkube workload show"),
        ("batkube report --format pd\t", "--format pdf"),
        ("batkube chart qu\t", "batkube chart queue"),
        ("batkube chart --width column qu\t", "batkube chart --width column queue"),
        ("batkube chart queue tra\t", "batkube chart queue trace.swf"),
        ("batkube run --scheduler tra\t", "batkube run --scheduler trace.swf"),
        ("batkube run --scheduler policy:eas\t", "batkube run --scheduler policy:easy"),
    ],
)
def test_zsh_completes_the_word(scripts: Path, tmp_path: Path, keys: str, line: str) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["zsh", "-f", "-i"], tmp_path)
    try:
        terminal.type(f"autoload -U compinit; compinit -u -D; source {scripts / 'zsh'}; echo rea''dy\n", "ready")
        assert line in terminal.type(keys, line)
    finally:
        terminal.close()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_offers_the_choices_of_an_argument_and_no_files(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["zsh", "-f", "-i"], tmp_path)
    try:
        terminal.type(f"autoload -U compinit; compinit -u -D; source {scripts / 'zsh'}; echo rea''dy\n", "ready")
        choices = terminal.type("batkube chart \t\t", "states")
        other = terminal.type("\x15batkube chart tra\t\x15echo no''ne\n", "none")
    finally:
        terminal.close()

    assert re.search(r"free\s+queue\s+states", choices)
    assert "trace.swf" not in choices + other


def test_every_command_and_option_is_in_every_script(scripts: Path) -> None:
    """The scripts are generated from the same commands as the help."""
    commands = list(command_shapes(typer.main.get_command(build_app())))

    assert {command.name for command in commands} >= {"", "run", "workload convert", "schedulers build", "graph query"}
    for shell in ("bash", "zsh"):
        text = (scripts / shell).read_text()
        assert not [
            name for command in commands for option in command.options for name in option.names if name not in text
        ]
