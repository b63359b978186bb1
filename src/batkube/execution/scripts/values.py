"""The values of a script: its variables, and the words that stand for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from batkube.execution.scripts.sums import calculated
from batkube.execution.scripts.syntax import ShellCommand, parse
from batkube.execution.scripts.words import Word


class Values:
    """The variables of a script; None where nobody knows a value."""

    def __init__(self, variables: Mapping[str, str | None]) -> None:
        self.variables = dict(variables)
        #: The status of the last command; None if nobody knows.
        self.status: int | None = 0

    def split(self, word: Word) -> Iterator[str | None]:
        """Yield the words that a word stands for: one, or as many as there are in a value without quotes."""
        text = self.text(word)
        if text is None or any(part.is_quoted or part.kind == "text" for part in word):
            yield text
        else:
            yield from text.split()

    def text(self, word: Word) -> str | None:
        """Return the text that a word stands for, None where nobody knows it."""
        texts: list[str] = []
        for part in word:
            value: str | None = part.text
            if part.kind == "name":
                value = self._value(part.text)
            elif part.kind == "command":
                value = self._output(part.text)
            elif part.kind == "sum":
                value = calculated(part.text, self._value)
            if value is None:
                return None
            texts.append(value)
        return "".join(texts)

    def _value(self, name: str) -> str | None:
        if name == "?":
            return None if self.status is None else str(self.status)
        if name in ("RANDOM", "SECONDS", "$", "!"):
            return None
        return self.variables.get(name, "")

    def _output(self, text: str) -> str | None:
        """Return what a command prints, where that is known."""
        script = parse(text)
        if len(script.nodes) != 1 or not isinstance(script.nodes[0], ShellCommand):
            return None
        words = [one for word in script.nodes[0].words for one in self.split(word)]
        match words:
            case ["echo", *rest] if None not in rest:
                return " ".join(str(one) for one in rest)
            case ["hostname"]:
                return self.variables.get("HOSTNAME")
            case ["expr", *rest] if None not in rest:
                return calculated(" ".join(str(one) for one in rest), self._value)
        return None
