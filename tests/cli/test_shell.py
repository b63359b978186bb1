"""The command line in a shell: completion, by the shells themselves; how much is said; standard input."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer.main
from tests.commands import RUN, WORKLOAD, answer, answer_here, study

from batkube.cli.app import build_app
from batkube.cli.commands.completion import command_shapes

SWF = "; MaxProcs: 4\n" + "".join(f"{n} {n} -1 5 1 -1 -1 1 9 -1 1 1 1 -1 -1 -1 -1 -1\n" for n in range(1, 4))


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The completions of all shells, by their names."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        result = answer_here(folder, "completion", shell)
        assert result.returncode == 0, result.stderr
        (folder / shell).write_text(result.stdout)
    return folder


#: What moves the cursor, colours or rings the bell.
_CONTROLS = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|\x07|.\x08")


class Terminal:
    """A shell that believes somebody types."""

    def __init__(self, command: list[str], cwd: Path) -> None:
        self._pid, self._screen = pty.fork()
        if self._pid == 0:
            os.chdir(cwd)
            os.environ.update({"PS1": "$ ", "TERM": "xterm", "INPUTRC": "/dev/null"})
            os.execvp(command[0], command)

    def type(self, keys: str, expected: str) -> str:
        """Type, and return what is shown once it holds what is expected, or nothing more comes for long."""
        os.write(self._screen, keys.encode())
        shown, deadline = "", time.monotonic() + 30
        while expected not in _CONTROLS.sub("", shown) and time.monotonic() < deadline:
            if select.select([self._screen], [], [], 0.2)[0]:
                shown += os.read(self._screen, 65536).decode(errors="replace")
        return _CONTROLS.sub("", shown)

    def close(self) -> None:
        os.close(self._screen)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


@pytest.mark.parametrize(
    ("keys", "completed"),
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
def test_bash_completes_what_is_typed(script: Path, tmp_path: Path, keys: str, completed: str) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    try:
        terminal.type(f"source {script / 'bash'}; echo rea''dy\n", "ready")
        assert completed in terminal.type(keys, completed)
    finally:
        terminal.close()


def test_bash_offers_the_choices_of_an_argument_and_no_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    try:
        terminal.type(f"source {script / 'bash'}; echo rea''dy\n", "ready")
        shown = terminal.type("batkube chart \t\t", "states")
        none = terminal.type("\x15batkube chart tra\t\techo no''ne\n", "none")
    finally:
        terminal.close()

    assert re.search(r"free\s+queue\s+states", shown)
    assert "trace.swf" not in shown + none


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(
    ("line", "offered"),
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
def test_fish_offers_what_is_possible_and_nothing_else(
    script: Path, tmp_path: Path, line: str, offered: list[str]
) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    command = ["fish", "-N", "-c", f"source {script / 'fish'}; complete -C '{line}'"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert sorted(row.partition("\t")[0] for row in told.splitlines()) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(
    ("keys", "completed"),
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
def test_zsh_completes_what_is_typed(script: Path, tmp_path: Path, keys: str, completed: str) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["zsh", "-f", "-i"], tmp_path)
    try:
        terminal.type(f"autoload -U compinit; compinit -u -D; source {script / 'zsh'}; echo rea''dy\n", "ready")
        assert completed in terminal.type(keys, completed)
    finally:
        terminal.close()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_offers_the_choices_of_an_argument_and_no_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.swf").write_text(SWF)
    terminal = Terminal(["zsh", "-f", "-i"], tmp_path)
    try:
        terminal.type(f"autoload -U compinit; compinit -u -D; source {script / 'zsh'}; echo rea''dy\n", "ready")
        shown = terminal.type("batkube chart \t\t", "states")
        none = terminal.type("\x15batkube chart tra\t\x15echo no''ne\n", "none")
    finally:
        terminal.close()

    assert re.search(r"free\s+queue\s+states", shown)
    assert "trace.swf" not in shown + none


def test_every_command_and_option_is_in_every_script(script: Path) -> None:
    """What help lists can be completed: the scripts are made from the same place."""
    known = list(command_shapes(typer.main.get_command(build_app())))

    assert {place.name for place in known} >= {"", "run", "workload convert", "schedulers build", "graph query"}
    for shell in ("bash", "zsh"):
        text = (script / shell).read_text()
        assert not [name for place in known for one in place.options for name in one.names if name not in text]


def test_more_is_said_when_asked_for_and_standard_output_stays_the_same(tmp_path: Path) -> None:
    study(tmp_path)
    words = (*RUN, "--force", "--quiet")
    plain, more = (answer(tmp_path, *options, *words) for options in ([], ["-v"]))
    errors = answer(tmp_path, "--log-level", "error", *words)

    assert plain.stderr == errors.stderr == ""
    assert plain.stdout == more.stdout == errors.stdout
    assert "INFO: batkube.simulation.run: read 2 jobs and 0 objects for 2 machines\n" in more.stderr
    wrong = answer(tmp_path, "--log-level", "loud", *words)
    assert (wrong.returncode, "'loud' is not one of" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("content", [SWF.encode(), gzip.compress(SWF.encode())], ids=["plain", "gzipped"])
def test_a_workload_comes_from_standard_input(tmp_path: Path, content: bytes) -> None:
    command = [sys.executable, "-m", "batkube", "workload", "show", "-", "--json"]
    result = subprocess.run(command, cwd=tmp_path, input=content, capture_output=True, check=False)

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["jobs"] == 3


def test_what_comes_from_standard_input_needs_a_format_and_no_run_reads_it(tmp_path: Path) -> None:
    content = json.dumps(WORKLOAD)
    show = [sys.executable, "-m", "batkube", "workload", "show", "-"]
    unnamed, named = (
        subprocess.run([*show, *more], input=content, capture_output=True, text=True, check=False)
        for more in ([], ["--format", "batsim"])
    )
    run = answer(tmp_path, *RUN, "--workload", "-")

    assert (unnamed.returncode, "name the format" in unnamed.stderr) == (2, True)
    assert named.returncode == 0, named.stderr
    assert (run.returncode, "standard input is gone once it is read" in run.stderr) == (2, True)


def test_pictures_are_drawn_without_remarks_on_fonts(tmp_path: Path) -> None:
    """Also where the cache of fonts cannot be kept, and where the font lacks a name's letters."""
    jobs = [{"id": f"作业{number}", "subtime": 0, "res": 1, "profile": "d"} for number in range(3)]
    (tmp_path / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))
    answer(tmp_path, *RUN, "--quiet")
    picture = answer_here(tmp_path, "gantt", "out", "-o", "g.png")
    page = answer(tmp_path, "report", "out", "-o", "r.html", env={**os.environ, "MPLCONFIGDIR": "/proc/none"})

    assert (picture.returncode, picture.stderr) == (0, "")
    assert (page.returncode, page.stderr) == (0, "")
