"""Building programs, once: a build is kept under the user's cache folder.

The key of a build is everything that went into it, the overlay included, so another version or recipe never meets an
old file. Two processes that want the same program at once wait for one another. A build that was broken off is taken up
where it was: what Go had downloaded and compiled is in Go's own caches.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from batkube.schedulers.overlay import digest, overlay_files, write_overlay
from batkube.schedulers.recipes import GoMod, Program, go_mod, missing_folder
from batkube.schedulers.toolchains import Report, Toolchain, failure, find_go, locked, run_go, toolchain

_SHOWN_LINES = 20
#: Progress is told so many times while packages are compiled.
_TOLD = 20


def built(wanted: Program, cache: Path, report: Report = lambda _: None, *, go_version: str = "") -> Path:
    """Return the path of the program below `cache`, building it if it is not there yet.

    `go_version` asks for a version of Go, such as 1.25 or 1.25.6, instead of the machine's.
    """
    build = _Build(wanted, cache, report, go_version)
    if not build.is_current():
        with locked(build.folder / "lock", lambda: report(f"waiting for another build of {wanted.title}")):
            if not build.is_current():
                build.make()
    return build.binary


def build_path(wanted: Program, cache: Path, *, go_version: str = "") -> Path:
    """Return where the program is, or would be."""
    return _Build(wanted, cache, lambda _: None, go_version).binary


class _Build:
    """One program with one toolchain."""

    def __init__(self, wanted: Program, cache: Path, report: Report, go_version: str) -> None:
        self._wanted = wanted
        self._report = report
        self._go: Toolchain | None = None
        self._overlay: dict[str, str] = {}
        if wanted.virtual:
            self._go = toolchain(cache, exactly=go_version, at_least=wanted.go, report=report)
            self._overlay = overlay_files(self._go.root)
        name = "-".join(filter(None, (wanted.name, wanted.version, self._key())))
        self.folder = cache / "programs" / name
        self.binary = self.folder / wanted.name

    def _key(self) -> str:
        wanted = self._wanted
        parts = [wanted.module, wanted.version, wanted.package, wanted.main, str(wanted.variables), go_mod(wanted, "")]
        if self._go is not None:
            parts += [self._go.version, digest(self._overlay), str(wanted.folder)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def is_current(self) -> bool:
        """Return whether there is nothing to do; whether a user's folder has changed only Go can tell."""
        return self._wanted.folder is None and self.binary.exists()

    def make(self) -> None:
        """Build the program."""
        wanted = self._wanted
        self._report(f"building {wanted.title}{f' from {wanted.module}' if wanted.module else ''}")
        work = wanted.folder or self._prepare()
        flags = ["-trimpath", "-ldflags", " ".join(["-s", "-w", *(f"-X {key}={to}" for key, to in wanted.variables)])]
        if wanted.folder is None:
            flags.append("-mod=mod")
        if self._go is not None:
            listing = write_overlay(self._overlay, self._go.root, self.folder / "overlay")
            flags += ["-overlay", str(listing)]
        target = wanted.package or "."
        total = self._count_packages(target, work)
        partial = self.folder / f"{wanted.name}.partial"
        self._compile(["build", "-v", *flags, "-o", str(partial), target], work, total)
        os.replace(partial, self.binary)
        self._report(f"built {wanted.title}")

    def _prepare(self) -> Path:
        """Fill the folder that the program is built in, and return it."""
        wanted = self._wanted
        work = self.folder / "source"
        shutil.rmtree(work, ignore_errors=True)
        self._report(f"downloading {wanted.module} {wanted.version}")
        described = run_go(self._line(["mod", "download", "-json", f"{wanted.module}@{wanted.version}"]), self.folder)
        source = json.loads(described)
        if wanted.go_mod is GoMod.COPY:
            shutil.copytree(source["Dir"], work, copy_function=shutil.copyfile)
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
        for module in wanted.missing:
            folder = work / missing_folder(module)
            folder.mkdir(parents=True)
            (folder / "go.mod").write_text(f"module {module}\n")
        return work

    def _line(self, arguments: Sequence[str]) -> list[str]:
        return [find_go(), *arguments] if self._go is None else self._go.line(arguments)

    def _count_packages(self, target: str, work: Path) -> int:
        """Return how many packages the program consists of; what is missing of them is downloaded."""
        self._report("downloading modules")
        flags = [] if self._wanted.folder else ["-mod=mod"]
        return len(run_go(self._line(["list", *flags, "-deps", target]), work).splitlines())

    def _compile(self, arguments: Sequence[str], work: Path, total: int) -> None:
        """Run `go build -v`, which names each package that it compiles and not those of its cache."""
        command = self._line(arguments)
        last: deque[str] = deque(maxlen=_SHOWN_LINES)
        step = max(1, total // _TOLD)
        count = 0
        with subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                last.append(line)
                count += 1
                if count % step == 0:
                    self._report(f"compiling: {count} of at most {total} packages")
        if process.returncode:
            raise failure(command, "".join(last))
