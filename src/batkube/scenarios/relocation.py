"""Find the files that a scenario names, and replace their paths when the files have moved.

A scheduler may be `policy:mine.py:Mine`, `second=./mine --verbose` or `python:mine.py rules.yaml`. A word of such a
text is a file if it is the path of an existing file. Paths inside the files themselves are not considered.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from batkube.scenarios.scenario import POLICY_PREFIX

#: The characters that separate a path from the words around it.
_SEPARATORS = r"\s=:,'\""
#: Programs of the operating system are not inputs. Another machine has its own; the manifest has their hashes.
_SYSTEM_FOLDERS = tuple(map(Path, ("/bin", "/lib", "/lib64", "/nix", "/opt", "/sbin", "/usr")))


def files_in_command_lines(texts: Iterable[str]) -> list[Path]:
    """Return the files that command lines and arguments name, each once, without those of the operating system."""
    words = (word for text in texts for word in (text, *re.split(f"[{_SEPARATORS}]+", text)) if {"/", "."} & set(word))
    paths = dict.fromkeys(Path(word) for word in words)
    return [
        path for path in paths if is_file(path) and not any(path.is_relative_to(folder) for folder in _SYSTEM_FOLDERS)
    ]


def is_file(path: Path) -> bool:
    """Return whether a path is that of a file; texts that cannot be a path are not."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text too long for a path, or with a null byte
        return False


def relocate(scenario: Mapping[str, object], new_paths: Mapping[str, str]) -> dict[str, object]:
    """Return the keys of a scenario with every path that is a key of `new_paths` replaced by its value."""
    return {key: _relocate_value(value, new_paths) for key, value in scenario.items()}


def _relocate_value(value: object, new_paths: Mapping[str, str]) -> object:
    if isinstance(value, Mapping):
        return relocate(value, new_paths)
    if isinstance(value, list | tuple):
        return [_relocate_value(item, new_paths) for item in value]
    if not isinstance(value, str) or not new_paths:
        return value
    # The longest first, because a path may be the beginning of another.
    choices = "|".join(map(re.escape, sorted(new_paths, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![^{_SEPARATORS}])(?:\./)*({choices})(?![^{_SEPARATORS}])")
    whole = pattern.fullmatch(value)
    if whole is not None:
        return new_paths[whole[1]]
    # A path with spaces needs quotes in a command line. A `policy:` is not a command line.
    quote = str if value.startswith(POLICY_PREFIX) else shlex.quote
    return pattern.sub(lambda match: quote(new_paths[match[1]]), value)
