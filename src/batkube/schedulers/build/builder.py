"""Builds programs once, and stores them in the user's cache folder.

The key of a build covers all its inputs, including the overlay, so another version or recipe never finds an old binary.
Concurrent builds of a program wait for each other. A finished binary is moved into place by a rename, so an interrupted
build leaves no incomplete binary; the next one is fast, because Go caches downloads and compiled packages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from batkube.schedulers.build.cache_permissions import check_permissions, make_private_folder
from batkube.schedulers.build.go_commands import check_main_package, compile_program, download
from batkube.schedulers.build.records import (
    DEFINITIONS,
    OVERLAY,
    PARTIAL,
    SOURCE,
    BuildRecord,
    lock_of,
    programs_folder,
    write_record,
)
from batkube.schedulers.build.toolchains import Report, Toolchain, file_lock, find_go, select_toolchain
from batkube.schedulers.definitions import encode_definitions, read_definitions
from batkube.schedulers.overlay import overlay_digest, overlay_files, write_overlay
from batkube.schedulers.recipes import BuildRecipe, GoMod, go_mod, stand_in_folder


def ensure_built(recipe: BuildRecipe, cache: Path, report: Report = lambda _: None, *, go_version: str = "") -> Path:
    """Return the path of the program below `cache`; build it if necessary.

    `go_version` selects a version of Go, such as 1.25 or 1.25.6, instead of the machine's.
    """
    build = _Build(recipe, cache, _select_toolchain(recipe, cache, go_version, report), report)
    if not build.is_current():
        with file_lock(lock_of(build.folder), lambda: report(f"waiting for another build of {recipe.title}")):
            if not build.is_current():
                build.run()
    check_permissions(build.binary, cache)
    return build.binary


def build_path(recipe: BuildRecipe, cache: Path, *, go_version: str = "") -> Path:
    """Return the path of the program, whether or not it is built."""
    return _Build(recipe, cache, _select_toolchain(recipe, cache, go_version)).binary


def build_folder(recipe: BuildRecipe, cache: Path, go: Toolchain | None) -> Path:
    """Return the folder of a program built with this toolchain; `go` is None for a program without the overlay."""
    return _Build(recipe, cache, go).folder


def _select_toolchain(
    recipe: BuildRecipe, cache: Path, go_version: str, report: Report = lambda _: None
) -> Toolchain | None:
    if not recipe.virtual:
        return None
    return select_toolchain(cache, exactly=go_version, at_least=recipe.go, report=report)


class _Build:
    """A build of one program with one toolchain."""

    def __init__(self, recipe: BuildRecipe, cache: Path, go: Toolchain | None, report: Report = lambda _: None) -> None:
        self._recipe = recipe
        self._cache = cache
        self._report = report
        self._go = go
        self._overlay = {} if go is None else overlay_files(go.root)
        name = "-".join(filter(None, (recipe.name, recipe.version, self._key())))
        self.folder = programs_folder(cache) / name
        self.binary = self.folder / recipe.name

    def _key(self) -> str:
        recipe = self._recipe
        parts = [recipe.module, recipe.version, recipe.package, recipe.main, str(recipe.variables), go_mod(recipe, "")]
        parts += [text for file in recipe.extra_sources for text in file]
        parts += recipe.definitions
        if self._go is not None:
            parts += [self._go.version, overlay_digest(self._overlay), str(recipe.folder)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def is_current(self) -> bool:
        """Return whether the program is already built. For a user's folder, only Go can decide that."""
        return self._recipe.folder is None and self.binary.exists()

    def run(self) -> None:
        """Build the program."""
        recipe = self._recipe
        self._report(f"building {recipe.title}{f' from {recipe.module}' if recipe.module else ''}")
        make_private_folder(self.folder)
        check_permissions(self.folder, self._cache)
        for leftover in self.folder.glob(f"*{PARTIAL}"):
            leftover.unlink()
        work = recipe.folder or self._prepare_source()
        self._report("downloading modules")
        target = recipe.package or "."
        flags = [] if recipe.folder else ["-mod=mod"]
        total = check_main_package(recipe, self._go_command(["list", *flags]), target, work)
        # A unique name: the compiler of a killed build may still be writing.
        partial = self.folder / f"{os.getpid()}{PARTIAL}"
        line = self._go_command(["build", "-v", *flags, *self._build_flags(), "-o", str(partial), target])
        compile_program(recipe, line, work, total, self._report)
        write_record(self.folder, BuildRecord.of(recipe, self._go))
        os.replace(partial, self.binary)
        shutil.rmtree(self._source_folder, ignore_errors=True)
        self._report(f"built {recipe.title}")

    def _build_flags(self) -> list[str]:
        variables = (f"-X {key}={value}" for key, value in self._recipe.variables)
        flags = ["-trimpath", "-ldflags", " ".join(["-s", "-w", *variables])]
        if self._go is not None:
            flags += ["-overlay", str(write_overlay(self._overlay, self._go.root, self.folder / OVERLAY))]
        return flags

    @property
    def _source_folder(self) -> Path:
        return self.folder / SOURCE

    def _prepare_source(self) -> Path:
        """Fill the folder in which the program is built, and return it."""
        recipe = self._recipe
        work = self._source_folder
        shutil.rmtree(work, ignore_errors=True)
        self._report(f"downloading {recipe.module} {recipe.version}")
        source = download(recipe, self._go_command(["mod", "download", "-json"]), self.folder)
        if recipe.definitions:
            definitions = read_definitions(Path(source["Dir"]), recipe.definitions)
            (self.folder / DEFINITIONS).write_bytes(encode_definitions(definitions))
        if recipe.go_mod is GoMod.COPY:
            # The vendor folder of a published module contains what its tools need, not its programs.
            ignored = shutil.ignore_patterns("vendor")
            shutil.copytree(source["Dir"], work, copy_function=shutil.copyfile, ignore=ignored)
            for folder in [work, *(path for path in work.rglob("*") if path.is_dir())]:
                folder.chmod(0o755)
        else:
            work.mkdir()
            sums = Path(source["Dir"]) / "go.sum"
            if sums.exists():
                shutil.copyfile(sums, work / "go.sum")
        (work / "go.mod").write_text(go_mod(recipe, Path(source["GoMod"]).read_text()))
        if recipe.main:
            (work / "main.go").write_text(recipe.main)
        for name, text in recipe.extra_sources:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        for module in recipe.missing_modules:
            folder = work / stand_in_folder(module)
            folder.mkdir(parents=True)
            (folder / "go.mod").write_text(f"module {module}\n")
        return work

    def _go_command(self, arguments: Sequence[str]) -> list[str]:
        if self._go is None:
            return [find_go(), *arguments]
        return self._go.command_line(arguments, own_workspace=self._recipe.folder is not None)
