"""What a user has: programs that were built for him, and a catalogue of his own. The folders are those of XDG."""

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
    """Return Batkube's folder in the user's cache, where built programs are kept."""
    return _folder("XDG_CACHE_HOME", ".cache")


def user_catalogue(files: Sequence[Path] = ()) -> Catalogue:
    """Return our catalogue with the user's own entries: of the configuration folder, then of the files given."""
    own = _folder("XDG_CONFIG_HOME", ".config") / "schedulers.yaml"
    return read_catalogue([*([own] if own.exists() else []), *files])


def installed_program(title: str, catalogue: Catalogue, report: Report = lambda _: None) -> Path:
    """Return the path of the program called `NAME` or `NAME@VERSION` in a catalogue, built on first use."""
    return ensure_built(find_recipe(title, catalogue), cache_folder(), report)


def is_ours(path: Path) -> bool:
    """Return whether a path is that of a program of our own catalogue, built here."""
    record = record_at(path.resolve().parent)
    return record is not None and any(
        (record.name, record.source) == (name, entry.module) for name, entry in default_catalogue().items()
    )


def search_path() -> str:
    """Return where the user's programs are looked for."""
    return os.environ.get("PATH") or os.defpath  # noqa: TID251 - as above


def module_path() -> dict[str, str]:
    """Return the variable by which the user's programs in Python find his modules, if he has set it."""
    name = "PYTHONPATH"
    return {name: os.environ[name]} if os.environ.get(name) else {}  # noqa: TID251 - as above


def _folder(variable: str, default: str) -> Path:
    folder = os.environ.get(variable)  # noqa: TID251 - where a user keeps things is not a scenario's business
    return (Path(folder) if folder else Path.home() / default) / "batkube"
