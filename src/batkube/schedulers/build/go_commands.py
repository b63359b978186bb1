"""Go commands of a build, with progress and with the right kind of error.

An error in a user's folder is an input error, shown with the compiler's messages. An error in a published module means
that the build has failed.
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
from batkube.kernel.instants import human_duration, seconds
from batkube.kernel.stopwatch import Stopwatch
from batkube.schedulers.build.cache_permissions import OWNER_ONLY_UMASK
from batkube.schedulers.build.toolchains import GoCommandFailed, Report, run_go
from batkube.schedulers.recipes import BuildRecipe

#: The number of progress reports during a compilation.
_PROGRESS_REPORTS = 20
_MAX_LINES = 60
#: Real seconds that an interrupted build has to end.
_GRACE_S = 20.0
#: Errors of Go for a module or version that does not exist (cmd/go, and the responses of proxies that it passes on).
_UNKNOWN_VERSION = re.compile(
    r"unknown revision|invalid version|malformed module path|\b(403 Forbidden|404 Not Found|410 Gone)\b|no such file"
)


def download(recipe: BuildRecipe, download_line: Sequence[str], folder: Path) -> dict[str, str]:
    """Download a published module; return the paths of its source and its go.mod (`Dir` and `GoMod`).

    `download_line` is the command `go mod download -json`, which prints errors as JSON, too.
    """
    command = [*download_line, f"{recipe.module}@{recipe.version}"]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, umask=OWNER_ONLY_UMASK)
    try:
        output: dict[str, str] = json.loads(process.stdout or "{}")
    except json.JSONDecodeError:
        output = {}
    if not process.returncode:
        return output
    message = output.get("Error") or process.stderr
    if _UNKNOWN_VERSION.search(message):
        # This build can never succeed, so remove its folder.
        with contextlib.suppress(OSError):
            folder.rmdir()
        problem = f"{recipe.module} has no version {recipe.version} that can be downloaded:\n{message.strip()}"
        remedy = f"run `batkube schedulers list` for the known versions of {recipe.name}"
        raise InputError(recipe.title, problem=problem, remedy=remedy)
    raise GoCommandFailed(command, message)


def check_main_package(recipe: BuildRecipe, list_line: Sequence[str], target: str, work: Path) -> int:
    """Download missing packages, and return the number of packages of the program.

    `list_line` is the command `go list`. Raises InputError if the package is not a main package.
    """
    try:
        packages = run_go([*list_line, "-deps", "-f", "{{.DepOnly}} {{.Name}}", target], work).splitlines()
    except GoCommandFailed as error:
        if recipe.folder is None:
            raise
        raise _package_error(recipe, f"Go cannot load the package:\n{error.error_output}", list_line) from error
    if recipe.folder is not None and "false main" not in packages:
        raise _package_error(recipe, "the package is not a program: its name is not `main`", list_line)
    return len(packages)


def compile_program(recipe: BuildRecipe, command: Sequence[str], work: Path, total: int, report: Report) -> None:
    """Run `go build -v`, which prints each package it compiles, but not cached ones."""
    last_lines: deque[str] = deque(maxlen=_MAX_LINES)
    step = max(1, total // _PROGRESS_REPORTS)
    stopwatch = Stopwatch()
    count = 0
    with subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True, umask=OWNER_ONLY_UMASK) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                last_lines.append(line)
                count += 1
                if count % step == 0:
                    report(progress_text(count, total, stopwatch.real_s))
        except BaseException:
            _interrupt(process)
            raise
    if process.returncode:
        raise _build_error(recipe, command, list(last_lines))


def progress_text(count: int, total: int, elapsed_s: float) -> str:
    """Return the progress of a compilation. The remaining time is an upper bound, since some packages may be cached."""
    left_s = round(elapsed_s * (total - count) / count)
    return f"compiling: {count} of at most {total} packages, at most {human_duration(seconds(left_s))} left"


def _interrupt(process: subprocess.Popen[str]) -> None:
    """Interrupt Go, so that it stops its compilers and removes its temporary files; kill it if it does not exit."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _build_error(recipe: BuildRecipe, command: Sequence[str], lines: list[str]) -> BatkubeError:
    """Return the error of a failed build: compiler messages start with `#` and the package."""
    first = next((number for number, line in enumerate(lines) if line.startswith("# ")), 0)
    error = GoCommandFailed(command, "".join(lines[first:]))
    if recipe.folder is None:
        return error
    return InputError(recipe.folder, at=recipe.package, problem=f"does not compile:\n{error.error_output}")


def _package_error(recipe: BuildRecipe, problem: str, list_line: Sequence[str]) -> InputError:
    """Return the error of a package that cannot be built, listing the packages of its module that can."""
    assert recipe.folder is not None
    line = [*list_line, "-e", "-f", '{{if eq .Name "main"}}{{.Dir}}{{end}}', "./..."]
    process = subprocess.run(line, cwd=recipe.folder, capture_output=True, text=True, check=False)
    folders = [Path(line) for line in process.stdout.splitlines() if line]
    programs = [f"./{folder.relative_to(recipe.folder)}" for folder in folders if folder.is_relative_to(recipe.folder)]
    others = ", ".join("." if name == "./." else name for name in programs if name != recipe.package)
    remedy = f"use --package with one of the module's programs: {others}" if others else None
    return InputError(recipe.folder, at=recipe.package, problem=problem, remedy=remedy)
