"""The user's installed programs and own catalogue. The folders follow the XDG Base Directory Specification."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.build.records import record_at
from batkube.schedulers.build.toolchains import Report
from batkube.schedulers.catalogue import Catalogue, read_catalogue
from batkube.schedulers.named_programs import default_catalogue, find_recipe


def cache_folder() -> Path:
    """Return Batkube's folder in the user's cache, which contains the built programs."""
    return _folder("XDG_CACHE_HOME", ".cache")


def user_catalogue(files: Sequence[Path] = ()) -> Catalogue:
    """Return Batkube's catalogue, extended by the user's own: the file in the configuration folder, then `files`."""
    user_file = _folder("XDG_CONFIG_HOME", ".config") / "schedulers.yaml"
    return read_catalogue([*([user_file] if user_file.exists() else []), *files])


def installed_program(title: str, catalogue: Catalogue, report: Report = lambda _: None) -> Path:
    """Return the binary of `NAME` or `NAME@VERSION` in a catalogue; it is built on first use."""
    return ensure_built(find_recipe(title, catalogue), cache_folder(), report)


def is_built_in(path: Path) -> bool:
    """Return whether a path is that of a program of Batkube's catalogue, built in this cache."""
    record = record_at(path.resolve().parent)
    return record is not None and any(
        (record.name, record.source) == (name, entry.module) for name, entry in default_catalogue().items()
    )


def search_path() -> str:
    """Return the user's PATH."""
    return os.environ.get("PATH") or os.defpath  # noqa: TID251 - as above


def module_path() -> dict[str, str]:
    """Return the user's PYTHONPATH as a variable, if it is set."""
    name = "PYTHONPATH"
    return {name: os.environ[name]} if os.environ.get(name) else {}  # noqa: TID251 - as above


def _folder(variable: str, default: str) -> Path:
    folder = os.environ.get(variable)  # noqa: TID251 - the user's folders are not part of a scenario
    return (Path(folder) if folder else Path.home() / default) / "batkube"
