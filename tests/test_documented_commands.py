"""The commands and options in the README and in docs exist, and every option is documented."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
import yaml
from tests.conftest import REPOSITORY

from batkube.cli.app import build_app
from batkube.cli.commands.completion import command_shapes
from batkube.scenarios.keys import KEYS

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
COMMANDS = {command.words: command.options for command in command_shapes(typer.main.get_command(build_app()))}
OPTIONS = {words: {name for option in options for name in option.names} for words, options in COMMANDS.items()}
_BLOCK = re.compile(r"^```(?:sh|bash|console)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Placeholders and optional parts of usage lines.
_PATTERN = re.compile(r"[\[\]…|]|\.\.\.")


def commands(page: Path) -> Iterator[str]:
    """Yield the command lines in a page's code blocks, with continued lines joined."""
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            line = line.strip().removeprefix("$ ")
            if re.match(r"(?:\.venv/bin/)?batkube ", line):
                yield line


def words_of(line: str) -> list[str]:
    """Return the words of a command up to the first shell operator; brackets of usage lines are removed."""
    text = _PATTERN.sub(" ", line) if _PATTERN.search(line) else line
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for word in lexer:
        if re.fullmatch(r"[;&<>()]+", word):
            break
        words.append(word)
    return words


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(REPOSITORY)) for page in PAGES])
def test_commands_on_a_page_exist_with_their_options(page: Path) -> None:
    for line in commands(page):
        words = words_of(line)[1:]
        command: tuple[str, ...] = ()
        options = [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)]
        for word in words:
            if (*command, word) in OPTIONS:
                command = (*command, word)
        assert command or len(options) == len(words), f"{page.name}: no such command: {line}"
        allowed = OPTIONS[command] | OPTIONS[()]
        unknown = [option for option in options if option not in allowed and not _is_negative(option)]
        assert not unknown, f"{page.name}: {' '.join(command)} has no {', '.join(unknown)}: {line}"


def _is_negative(word: str) -> bool:
    return re.fullmatch(r"-\d+", word) is not None


def test_the_check_finds_commands() -> None:
    """If the pattern no longer matched, the other tests would check nothing."""
    counts = {page.name: len(list(commands(page))) for page in PAGES}

    assert sum(counts.values()) > 60
    assert sum(count > 0 for count in counts.values()) > 15


def test_every_option_is_documented() -> None:
    """On a page that names its command; `-h` is an option of every command."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    missing: list[str] = []
    for command, options in COMMANDS.items():
        documentation = "\n".join(text for text in texts.values() if not command or f"batkube {command[0]}" in text)
        for option in options:
            if "--help" not in option.names and not any(_has(documentation, name) for name in option.names):
                missing.append(f"{' '.join(command)} {option.names[0]}")
    assert "\n".join(missing) == ""


def _has(text: str, option: str) -> bool:
    dashes, name = re.fullmatch(r"(--?)(?:no-)?(.+)", option).groups()  # type: ignore[union-attr]
    return re.search(rf"(?<![\w-]){dashes}(?:\[?no-\]?)?{re.escape(name)}(?![\w-])", text) is not None


def test_the_keys_of_scenarios_are_documented() -> None:
    page = (REPOSITORY / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[:2]
    documentation = {key for block in blocks for key in yaml.safe_load(block)}

    assert documentation == set(KEYS)
