"""Names in figures: texts that a user has set are shown whole, other names are cut to the space that they have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from batkube.files.yaml_reader import read_yaml
from batkube.kernel.errors import InputError
from batkube.outputs.pages.markup import displayable

#: Between the parts of a composed name, such as `easy, exact`.
_SEPARATOR = ", "
#: Signs after the name of a series; `outputs/measures/comparisons/comparability.py` has their meanings.
_SIGNS = (" ✗", " ‡", " ¶")


class FigureLabels:
    """The texts to show for names, and a record of the names that were cut or shown in figures so far."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = dict(texts or {})
        self._cut: dict[str, None] = {}
        self._used: set[str] = set()

    @property
    def cut_names(self) -> list[str]:
        """The names that were cut, in order of appearance."""
        return list(self._cut)

    @property
    def unused_names(self) -> list[str]:
        """The names with a text that no figure showed."""
        return [name for name in self._texts if name not in self._used]

    def text(self, name: str, max_length: int = 20) -> str:
        """Return the text for a name: the one that was set, or the name on one line, cut to `max_length` characters."""
        text = self._set_text(name)
        if text is not None:
            return single_line(text)
        line = single_line(name)
        if len(line) <= max_length:
            return line
        self._cut[name] = None
        return f"{line[: max_length - 1]}…"

    def _set_text(self, name: str) -> str | None:
        """Return the text that was set for a name, or for parts of a composed one; None if there is none."""
        if name in self._texts:
            self._used.add(name)
            return self._texts[name]
        sign = next((sign for sign in _SIGNS if name.endswith(sign)), "")
        parts = name.removesuffix(sign).split(_SEPARATOR)
        if not (sign or len(parts) > 1) or not any(part in self._texts for part in parts):
            return None
        self._used.update(part for part in parts if part in self._texts)
        return _SEPARATOR.join(self._texts.get(part, part) for part in parts) + sign


def single_line(text: str) -> str:
    """Return a user's text on one line, for a figure."""
    return displayable(" ".join(text.split()))


def read_labels(path: Path) -> FigureLabels:
    """Read a YAML file of names and their texts. Raises InputError."""
    content = read_yaml(path)
    remedy = "write a line for each name: `'a long name': a short text`; quote numbers"
    if not isinstance(content, dict) or not content:
        raise InputError(path, problem="is not a mapping of names to texts", remedy=remedy)
    for name, text in content.items():
        if not isinstance(name, str) or not isinstance(text, str) or not text.strip():
            raise InputError(path, at=str(name), problem=f"{text!r} is not a text for a name", remedy=remedy)
    return FigureLabels(content)
