"""Which of the kept programs would be found again, and which are outdated."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from batkube.kernel.errors import BatkubeError
from batkube.schedulers.build.builder import build_folder
from batkube.schedulers.build.records import BuildRecord, CachedBuild
from batkube.schedulers.build.toolchains import Toolchain, local_toolchain
from batkube.schedulers.catalogue import Catalogue
from batkube.schedulers.named_programs import find_recipe
from batkube.schedulers.recipes import BuildRecipe, local_recipe


def outdated_builds(builds: Sequence[CachedBuild], catalogue: Catalogue, cache: Path) -> list[CachedBuild]:
    """Return those that nobody will ask for again.

    That is what was broken off, what was built with another overlay, recipe or toolchain than would be used today, and
    what comes from a folder or an entry of the catalogue that is gone. Needs Go to find out.
    """
    at_hand = functools.cache(lambda version: local_toolchain(cache, version))

    def is_current(kept: CachedBuild) -> bool:
        folder = _current_folder(kept.record, catalogue, cache, at_hand) if kept.record else None
        return folder == kept.folder

    return [kept for kept in builds if not is_current(kept)]


def _current_folder(
    record: BuildRecord, catalogue: Catalogue, cache: Path, at_hand: Callable[[str], Toolchain | None]
) -> Path | None:
    """Return where the program that a record describes would be looked for today; None if nowhere."""
    wanted = _recipe(record, catalogue)
    go = at_hand(record.go) if record.go else None
    if wanted is None or (record.go and go is None):
        return None
    wanted = msgspec.structs.replace(wanted, virtual=go is not None)  # anything can be built for real time, too
    try:
        return build_folder(wanted, cache, go)
    except BatkubeError:
        return None  # the overlay no longer fits this Go


def _recipe(record: BuildRecord, catalogue: Catalogue) -> BuildRecipe | None:
    if not record.is_local:
        return find_recipe(f"{record.name}@{record.version}", catalogue) if record.name in catalogue else None
    source = Path(record.source)
    return local_recipe(source, record.package) if (source / "go.mod").is_file() else None
