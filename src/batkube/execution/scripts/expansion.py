"""Word expansion: parameters, command substitution, arithmetic and field splitting (POSIX: Word Expansions)."""

from __future__ import annotations

import re
from collections.abc import Callable

from batkube.execution.scripts.arithmetic import evaluate
from batkube.execution.scripts.lexer import UnsupportedScript, Word, WordPart
from batkube.execution.scripts.state import ScriptState

#: Variables that the shell or the container runtime sets, with unknown values.
_RUNTIME_VARIABLES = frozenset(
    ("$", "!", "-", "0", "RANDOM", "SECONDS", "PPID", "LINENO", "PATH", "PWD", "OLDPWD", "HOME", "IFS")
)
_RUNTIME_VARIABLES |= frozenset(
    ("OPTIND", "PS1", "PS2", "PS4", "SHELL", "SHLVL", "USER", "UID", "EUID", "TERM", "LANG", "_")
)
#: Variables that a kubelet sets for Services (Kubernetes documentation, "Service", "Environment variables").
_SERVICE_VARIABLE = re.compile(r"[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT|PORT)(_\w+)?")
_PATTERN = re.compile(r"[*?]|\[.*\]")
#: `{a,b}` and `{1..3}` are several words in bash, one in other shells.
_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}")


class WordExpander:
    """Expands the words of a script; an unknown value is None."""

    def __init__(self, state: ScriptState, output_of: Callable[[str], str | None]) -> None:
        self._state = state
        #: Runs a command and returns its output.
        self._output_of = output_of

    def fields(self, word: Word) -> list[str | None]:
        """Expand a word to fields: one, or several if it has an unquoted value with white space."""
        if [part for part in word if part.text or not part.is_quoted] == [WordPart("name", "@", is_quoted=True)]:
            return list(self._state.arguments)
        fields: list[str] = []
        current, is_open, bare = "", False, ""
        for part in word:
            value = self._value_of(part)
            if value is None:
                return [None]
            bare += "" if part.is_quoted else value
            if part.is_quoted or part.kind == "text":
                current, is_open = current + value, is_open or part.is_quoted or bool(value)
                continue
            first, *pieces = re.split(r"[ \t\n]+", value)
            current, is_open = current + first, is_open or bool(first)
            for piece in pieces:
                fields += [current] if is_open else []
                current, is_open = piece, bool(piece)
        fields += [current] if is_open else []
        if _BRACES.search("".join(part.text for part in word if part.kind == "text" and not part.is_quoted)):
            raise UnsupportedScript("braces differ between shells")
        # Pathname expansion may replace the word by file names.
        return [None] if _PATTERN.search(bare) or _starts_with_tilde(word) else list(fields)

    def text(self, word: Word) -> str | None:
        """Expand a word to one text without field splitting; None if it is unknown."""
        texts = [self._value_of(part) for part in word]
        if None in texts or _starts_with_tilde(word):
            return None
        return "".join(text for text in texts if text is not None)

    def _value_of(self, part: WordPart) -> str | None:
        if part.kind == "command":
            return self._output_of(part.text)
        if part.kind == "sum":
            return evaluate(part.text, self.variable)
        if part.kind == "text":
            return part.text
        if part.default is None:
            return self.variable(part.text)
        value = self.variable(part.text, has_default=True)
        return self.text(part.default) if value == "" else value

    def variable(self, name: str, *, has_default: bool = False) -> str | None:
        """Return the value of a variable, "" if it is unset, None if it is unknown."""
        state, arguments = self._state, self._state.arguments
        if name == "?":
            return None if state.status is None else str(state.status)
        if name in ("@", "*"):
            return " ".join(arguments)
        if name == "#":
            return str(len(arguments))
        if name in state.context.variables:
            return state.context.variables[name]
        if name.isdigit() and name != "0":
            if int(name) <= len(arguments):
                return arguments[int(name) - 1]
        elif name in _RUNTIME_VARIABLES or _SERVICE_VARIABLE.fullmatch(name) or not state.knows_all_variables:
            return None
        if state.context.nounset and not has_default:
            raise UnsupportedScript(f"${name} is not set, and `set -u` is on")
        return ""


def _starts_with_tilde(word: Word) -> bool:
    return bool(word) and word[0].kind == "text" and not word[0].is_quoted and word[0].text.startswith("~")
