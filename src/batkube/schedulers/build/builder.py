"""Building programs, once: a build is kept under the user's cache folder.

The key of a build is everything that went into it, the overlay included, so another version or recipe never meets an
old file. Two processes that want the same program at once wait for one another. A program appears under its name when
it is whole, by renaming, so a build that was broken off leaves nothing that could be taken for one; the next takes up
where it was, since what Go had downloaded and compiled is in Go's own caches.
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


def ensure_built(wanted: BuildRecipe, cache: Path, report: Report = lambda _: None, *, go_version: str = "") -> Path:
    """Return the path of the program below `cache`, building it if it is not there yet.

    `go_version` asks for a version of Go, such as 1.25 or 1.25.6, instead of the machine's.
    """
    build = _Build(wanted, cache, _select_toolchain(wanted, cache, go_version, report), report)
    if not build.is_current():
        with file_lock(lock_of(build.folder), lambda: report(f"waiting for another build of {wanted.title}")):
            if not build.is_current():
                build.run()
    check_permissions(build.binary, cache)
    return build.binary


def build_path(wanted: BuildRecipe, cache: Path, *, go_version: str = "") -> Path:
    """Return where the program is, or would be."""
    return _Build(wanted, cache, _select_toolchain(wanted, cache, go_version)).binary


def build_folder(wanted: BuildRecipe, cache: Path, go: Toolchain | None) -> Path:
    """Return where a program built with this toolchain is kept; `go` is None for one that runs on real time."""
    return _Build(wanted, cache, go).folder


def _select_toolchain(
    wanted: BuildRecipe, cache: Path, go_version: str, report: Report = lambda _: None
) -> Toolchain | None:
    if not wanted.virtual:
        return None
    return select_toolchain(cache, exactly=go_version, at_least=wanted.go, report=report)


class _Build:
    """One program with one toolchain."""

    def __init__(self, wanted: BuildRecipe, cache: Path, go: Toolchain | None, report: Report = lambda _: None) -> None:
        self._wanted = wanted
        self._cache = cache
        self._report = report
        self._go = go
        self._overlay = {} if go is None else overlay_files(go.root)
        name = "-".join(filter(None, (wanted.name, wanted.version, self._key())))
        self.folder = programs_folder(cache) / name
        self.binary = self.folder / wanted.name

    def _key(self) -> str:
        wanted = self._wanted
        parts = [wanted.module, wanted.version, wanted.package, wanted.main, str(wanted.variables), go_mod(wanted, "")]
        parts += [text for file in wanted.extra_sources for text in file]
        parts += wanted.definitions
        if self._go is not None:
            parts += [self._go.version, overlay_digest(self._overlay), str(wanted.folder)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def is_current(self) -> bool:
        """Return whether there is nothing to do; whether a user's folder has changed only Go can tell."""
        return self._wanted.folder is None and self.binary.exists()

    def run(self) -> None:
        """Build the program."""
        wanted = self._wanted
        self._report(f"building {wanted.title}{f' from {wanted.module}' if wanted.module else ''}")
        make_private_folder(self.folder)
        check_permissions(self.folder, self._cache)
        for leftover in self.folder.glob(f"*{PARTIAL}"):
            leftover.unlink()
        work = wanted.folder or self._prepare_source()
        self._report("downloading modules")
        target = wanted.package or "."
        flags = [] if wanted.folder else ["-mod=mod"]
        total = check_main_package(wanted, self._go_command(["list", *flags]), target, work)
        # A name of our own: the compiler of a build that was killed may still be at work.
        partial = self.folder / f"{os.getpid()}{PARTIAL}"
        line = self._go_command(["build", "-v", *flags, *self._build_flags(), "-o", str(partial), target])
        compile_program(wanted, line, work, total, self._report)
        write_record(self.folder, BuildRecord.of(wanted, self._go))
        os.replace(partial, self.binary)
        shutil.rmtree(self._source_folder, ignore_errors=True)
        self._report(f"built {wanted.title}")

    def _build_flags(self) -> list[str]:
        variables = (f"-X {key}={to}" for key, to in self._wanted.variables)
        flags = ["-trimpath", "-ldflags", " ".join(["-s", "-w", *variables])]
        if self._go is not None:
            flags += ["-overlay", str(write_overlay(self._overlay, self._go.root, self.folder / OVERLAY))]
        return flags

    @property
    def _source_folder(self) -> Path:
        return self.folder / SOURCE

    def _prepare_source(self) -> Path:
        """Fill the folder that the program is built in, and return it."""
        wanted = self._wanted
        work = self._source_folder
        shutil.rmtree(work, ignore_errors=True)
        self._report(f"downloading {wanted.module} {wanted.version}")
        source = download(wanted, self._go_command(["mod", "download", "-json"]), self.folder)
        if wanted.definitions:
            definitions = read_definitions(Path(source["Dir"]), wanted.definitions)
            (self.folder / DEFINITIONS).write_bytes(encode_definitions(definitions))
        if wanted.go_mod is GoMod.COPY:
            # What is vendored of a published module is what its tools need, not its programs.
            without = shutil.ignore_patterns("vendor")
            shutil.copytree(source["Dir"], work, copy_function=shutil.copyfile, ignore=without)
            for folder in [work, *(path for path in work.rglob("*") if path.is_dir())]:
                folder.chmod(0o755)
        else:
            work.mkdir()
            sums = Path(source["Dir"]) / "go.sum"
            if sums.exists():
                shutil.copyfile(sums, work / "go.sum")
        (work / "go.mod").write_text(go_mod(wanted, Path(source["GoMod"]).read_text()))
        if wanted.main:
            (work / "main.go").write_text(wanted.main)
        for name, text in wanted.extra_sources:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        for module in wanted.missing_modules:
            folder = work / stand_in_folder(module)
            folder.mkdir(parents=True)
            (folder / "go.mod").write_text(f"module {module}\n")
        return work

    def _go_command(self, arguments: Sequence[str]) -> list[str]:
        if self._go is None:
            return [find_go(), *arguments]
        return self._go.command_line(arguments, own_workspace=self._wanted.folder is not None)
