"""Files that a scenario names, in the middle of other words too, and the same scenario with its files elsewhere.

A scheduler may be `policy:mine.py:Mine`, `second=./mine --verbose` or `python:mine.py rules.yaml`. What of such a text
is a file is told by looking: a word that names one. Paths that a file has in its own content are its own business.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from batkube.scenarios.scenario import POLICY_PREFIX

#: What parts a path from the words around it.
_SEPARATORS = r"\s=:,'\""
#: Programs of the machine are no inputs: elsewhere there are others, which are told by their hashes if they matter.
_SYSTEM_FOLDERS = tuple(map(Path, ("/bin", "/lib", "/lib64", "/nix", "/opt", "/sbin", "/usr")))


def files_in_command_lines(texts: Iterable[str]) -> list[Path]:
    """Return the files that command lines and arguments name, each once; those of the system are not among them."""
    words = (word for text in texts for word in (text, *re.split(f"[{_SEPARATORS}]+", text)) if {"/", "."} & set(word))
    paths = dict.fromkeys(Path(word) for word in words)
    return [
        path for path in paths if _is_file(path) and not any(path.is_relative_to(place) for place in _SYSTEM_FOLDERS)
    ]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text too long for a path, or with a null byte
        return False


def relocate(scenario: Mapping[str, object], places: Mapping[str, str]) -> dict[str, object]:
    """Return the keys of a scenario with each file that `places` knows where that says."""
    return {key: _relocate_value(value, places) for key, value in scenario.items()}


def _relocate_value(value: object, places: Mapping[str, str]) -> object:
    if isinstance(value, Mapping):
        return relocate(value, places)
    if isinstance(value, list | tuple):
        return [_relocate_value(one, places) for one in value]
    if not isinstance(value, str):
        return value
    if not places:
        return value
    choices = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))  # one may be the beginning of another
    pattern = re.compile(rf"(?<![^{_SEPARATORS}])(?:\./)*({choices})(?![^{_SEPARATORS}])")
    whole = pattern.fullmatch(value)
    if whole is not None:
        return places[whole[1]]
    # In a command line a path with spaces needs quotes; what follows `policy:` is none.
    quote = str if value.startswith(POLICY_PREFIX) else shlex.quote
    return pattern.sub(lambda match: quote(places[match[1]]), value)
