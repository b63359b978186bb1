"""Finds outdated programs in the build cache."""

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
    """Return the builds that will not be used again.

    These are incomplete builds, builds with another overlay, recipe or toolchain than today's, and builds whose folder
    or catalogue entry no longer exists. Requires Go.
    """
    toolchain_of = functools.cache(lambda version: local_toolchain(cache, version))

    def is_current(build: CachedBuild) -> bool:
        folder = _current_folder(build.record, catalogue, cache, toolchain_of) if build.record else None
        return folder == build.folder

    return [build for build in builds if not is_current(build)]


def _current_folder(
    record: BuildRecord, catalogue: Catalogue, cache: Path, toolchain_of: Callable[[str], Toolchain | None]
) -> Path | None:
    """Return the folder of the program that this record describes, if built today; None if it cannot be built."""
    recipe = _recipe(record, catalogue)
    go = toolchain_of(record.go) if record.go else None
    if recipe is None or (record.go and go is None):
        return None
    recipe = msgspec.structs.replace(recipe, virtual=go is not None)  # any recipe can also be built for real time
    try:
        return build_folder(recipe, cache, go)
    except BatkubeError:
        return None  # the overlay does not support this Go version


def _recipe(record: BuildRecord, catalogue: Catalogue) -> BuildRecipe | None:
    if not record.is_local:
        return find_recipe(f"{record.name}@{record.version}", catalogue) if record.name in catalogue else None
    source = Path(record.source)
    return local_recipe(source, record.package) if (source / "go.mod").is_file() else None
