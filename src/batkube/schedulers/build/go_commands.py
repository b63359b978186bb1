"""Letting Go compile: with progress, and with its complaints passed on to whom they concern.

What is wrong with a folder of the user's is an error of theirs, shown with the compiler's own lines. What is wrong with
a published program is not: then the build has failed.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from batkube.kernel.errors import BatkubeError, InputError
from batkube.schedulers.build.cache_permissions import OWNER_ONLY_UMASK
from batkube.schedulers.build.toolchains import GoCommandFailed, Report, run_go
from batkube.schedulers.recipes import BuildRecipe

#: Progress is told so many times while packages are compiled.
_PROGRESS_REPORTS = 20
_KEPT_LINES = 60
#: What Go says of a module or version that is not there (cmd/go, and the answers of proxies that it passes on).
_UNKNOWN_VERSION = re.compile(
    r"unknown revision|invalid version|malformed module path|\b(403 Forbidden|404 Not Found|410 Gone)\b|no such file"
)


def download(wanted: BuildRecipe, download_line: Sequence[str], folder: Path) -> dict[str, str]:
    """Return where the source of a published program is, having downloaded it: `Dir` and `GoMod`.

    `download_line` is the command `go mod download -json`, which prints what went wrong as it prints all else.
    """
    command = [*download_line, f"{wanted.module}@{wanted.version}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, umask=OWNER_ONLY_UMASK)
    try:
        answer: dict[str, str] = json.loads(done.stdout or "{}")
    except json.JSONDecodeError:
        answer = {}
    if not done.returncode:
        return answer
    complaint = answer.get("Error") or done.stderr
    if _UNKNOWN_VERSION.search(complaint):
        # It was to be built there, and never will be.
        with contextlib.suppress(OSError):
            folder.rmdir()
        problem = f"{wanted.module} has no version {wanted.version} that can be downloaded:\n{complaint.strip()}"
        remedy = f"`batkube schedulers list` shows the versions of {wanted.name} that are known"
        raise InputError(wanted.title, problem=problem, remedy=remedy)
    raise GoCommandFailed(command, complaint)


def check_main_package(wanted: BuildRecipe, list_line: Sequence[str], target: str, work: Path) -> int:
    """Return how many packages the program consists of, having downloaded what is missing of them.

    `list_line` is the command `go list`. Refuses what is not the main package of a program.
    """
    try:
        listed = run_go([*list_line, "-deps", "-f", "{{.DepOnly}} {{.Name}}", target], work).splitlines()
    except GoCommandFailed as error:
        if wanted.folder is None:
            raise
        raise _package_error(wanted, f"Go cannot load the package:\n{error.complaint}", list_line) from error
    if wanted.folder is not None and "false main" not in listed:
        raise _package_error(wanted, "the package is no program: it is not called `main`", list_line)
    return len(listed)


def compile_program(wanted: BuildRecipe, command: Sequence[str], work: Path, total: int, report: Report) -> None:
    """Run `go build -v`, which names each package that it compiles and not those of its cache."""
    last: deque[str] = deque(maxlen=_KEPT_LINES)
    step = max(1, total // _PROGRESS_REPORTS)
    count = 0
    with subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True, umask=OWNER_ONLY_UMASK) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                last.append(line)
                count += 1
                if count % step == 0:
                    report(f"compiling: {count} of at most {total} packages")
        except BaseException:
            process.send_signal(signal.SIGINT)  # Go then ends what it has begun, and removes its temporary files
            raise
    if process.returncode:
        raise _build_error(wanted, command, list(last))


def _build_error(wanted: BuildRecipe, command: Sequence[str], lines: list[str]) -> BatkubeError:
    """Return the error of a build: what the compiler says begins with `#` and the package that it concerns."""
    first = next((number for number, line in enumerate(lines) if line.startswith("# ")), 0)
    error = GoCommandFailed(command, "".join(lines[first:]))
    if wanted.folder is None:
        return error
    return InputError(wanted.folder, at=wanted.package, problem=f"does not compile:\n{error.complaint}")


def _package_error(wanted: BuildRecipe, problem: str, list_line: Sequence[str]) -> InputError:
    """Return the error of a package that cannot be built, with those of its module that can."""
    assert wanted.folder is not None
    line = [*list_line, "-e", "-f", '{{if eq .Name "main"}}{{.Dir}}{{end}}', "./..."]
    done = subprocess.run(line, cwd=wanted.folder, capture_output=True, text=True, check=False)
    folders = [Path(line) for line in done.stdout.splitlines() if line]
    programs = [f"./{folder.relative_to(wanted.folder)}" for folder in folders if folder.is_relative_to(wanted.folder)]
    others = ", ".join("." if name == "./." else name for name in programs if name != wanted.package)
    remedy = f"give one of the module's programs with --package: {others}" if others else None
    return InputError(wanted.folder, at=wanted.package, problem=problem, remedy=remedy)
