"""Control characters of foreign text do not reach a terminal."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from batkube.text.console import EscapingConsole
from batkube.text.terminal import EscapingStream, visible

TITLE = "\x1b]0;owned\x07"


def printed(*, is_terminal: bool = True) -> tuple[io.BytesIO, EscapingStream]:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return is_terminal

    file = Terminal()
    return file, EscapingStream(file, encoding="utf-8", write_through=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TITLE, "\\x1b]0;owned\\x07"),
        ("a\tb\nc", "a\tb\nc"),
        ("over\rwritten\x08", "over\\rwritten\\x08"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("Zürich ✓ τ 漢", "Zürich ✓ τ 漢"),
    ],
)
def test_control_characters_are_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_stream_escapes_everything_that_is_printed() -> None:
    file, stream = printed()

    print(TITLE, file=stream)
    stream.writelines([TITLE])

    assert file.getvalue() == b"\\x1b]0;owned\\x07\n\\x1b]0;owned\\x07"


def test_a_console_escapes_text_and_keeps_its_own_styles() -> None:
    file, stream = printed()
    table = Table()
    table.add_column(Text(TITLE))
    table.add_row(f"cell {TITLE}")

    with redirect_stdout(stream):
        console = EscapingConsole(force_terminal=True, color_system="standard")
        console.print(Text(TITLE, style="bold"))
        console.print(table)
        with Progress(console=console, transient=True) as bar:
            bar.add_task(TITLE)
            print(TITLE)

    output = file.getvalue()
    assert b"\x1b[1m\\x1b]0;owned" in output
    assert b"\x1b]0;" not in output
    assert b"\x07" not in output
