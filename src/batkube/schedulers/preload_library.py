"""The C library that virtualizes time for programs in any language, compiled once into the user's cache folder.

Its source is in the folder `native`; `clock.h` describes how it works.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from batkube.kernel.errors import InputError, RunFailed
from batkube.schedulers.build.cache_permissions import OWNER_ONLY_UMASK, check_permissions, make_private_folder
from batkube.schedulers.build.toolchains import Report, file_lock

_COMPILERS = ("cc", "gcc", "clang")
#: initial-exec: thread-local variables must not allocate memory on first use, which may happen within malloc.
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-ftls-model=initial-exec")
_LIBRARIES = ("-ldl", "-lpthread")
_SHOWN_LINES = 20


def clock_library(cache: Path, report: Report = lambda _: None) -> Path:
    """Return the path of the library below `cache`; compile it if necessary."""
    source = native_source_folder()
    files = sorted(source.glob("*.[ch]"))
    parts = [" ".join((*_FLAGS, os.uname().machine)).encode(), *(path.read_bytes() for path in files)]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]
    library = cache / "native" / f"libbatkube-clock-{key}.so"
    if not library.exists():
        with file_lock(
            library.with_suffix(".lock"), lambda: report("waiting for another to compile the clock library")
        ):
            if not library.exists():
                _compile(files, library, report)
    check_permissions(library, cache)
    return library


def native_source_folder() -> Path:
    """Return the folder of Batkube's C files: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "native", package.parent.parent / "native"):
        if (folder / "clock.h").is_file():
            return folder
    raise RunFailed("the C files of the virtual clock are missing from this installation of Batkube")


def _compile(files: list[Path], library: Path, report: Report) -> None:
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise InputError(
            "clock: preload",
            problem="programs that are not written in Go need a clock library in C, but no C compiler was found",
            remedy="install one (Debian: apt install gcc), or run with --time paced and clock: real",
        )
    report("compiling the clock library")
    make_private_folder(library.parent)
    partial = library.with_suffix(f".{os.getpid()}.partial")
    sources = [str(path) for path in files if path.suffix == ".c"]
    command = [compiler, *_FLAGS, "-o", str(partial), *sources, *_LIBRARIES]
    process = subprocess.run(command, capture_output=True, text=True, check=False, umask=OWNER_ONLY_UMASK)
    if process.returncode:
        lines = "\n".join(process.stderr.splitlines()[-_SHOWN_LINES:])
        raise RunFailed(f"`{Path(compiler).name}` cannot compile the clock library:\n{lines}")
    os.replace(partial, library)
