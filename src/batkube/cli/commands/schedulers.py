"""`batkube schedulers`: list and build programs for virtual time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.output.scheduler_list import list_lines, megabytes_text
from batkube.kernel.errors import InputError, RunFailed
from batkube.schedulers.build.builder import build_path, ensure_built
from batkube.schedulers.build.cache import outdated_builds
from batkube.schedulers.build.records import CachedBuild, cached_builds, programs_folder, remove_build
from batkube.schedulers.installed import cache_folder, user_catalogue
from batkube.schedulers.named_programs import find_recipe
from batkube.schedulers.recipes import BuildRecipe, local_recipe

app = typer.Typer(help="Build real schedulers for virtual time.", no_args_is_help=True)

_Name = Annotated[str | None, typer.Argument(metavar="NAME[@VERSION]", help="A program of the catalogue.")]
_Files = Annotated[
    list[Path] | None, typer.Option("--catalogue", metavar="FILE", help="A YAML file with more programs.")
]
_Module = Annotated[
    Path | None, typer.Option("--module", metavar="DIR", help="Build from the Go module in this folder instead.")
]
_Package = Annotated[
    str, typer.Option("--package", metavar="PATH", help="The main package within --module, such as ./cmd/scheduler.")
]
_GoVersion = Annotated[
    str, typer.Option("--go-version", metavar="VERSION", help="The Go to build with, such as 1.25 or 1.26.8.")
]


@app.command("list")
def list_programs(catalogue: _Files = None) -> None:
    """List the programs that can be built, and existing builds."""
    programs = user_catalogue(catalogue or ())
    builds = cached_builds(cache_folder())
    stale: list[CachedBuild] = []
    with contextlib.suppress(RunFailed):  # without Go, existing builds can still be listed
        stale = outdated_builds(builds, programs, cache_folder())
    for line in list_lines(
        programs, [build for build in builds if build not in stale], stale, programs_folder(cache_folder())
    ):
        typer.echo(line)


@app.command()
def prune(catalogue: _Files = None) -> None:
    """Remove outdated builds.

    These are incomplete builds, builds with an older overlay or recipe, and builds from folders that do not exist.
    """
    stale = outdated_builds(cached_builds(cache_folder()), user_catalogue(catalogue or ()), cache_folder())
    freed_bytes = 0
    for build in stale:
        failure = remove_build(build)
        freed_bytes += 0 if failure else build.size_bytes
        typer.echo(f"kept {build.folder.name}: {failure}" if failure else f"removed {build.folder.name}", err=True)
    typer.echo(f"freed {megabytes_text(freed_bytes)}")


@app.command()
def build(
    name: _Name = None,
    module: _Module = None,
    package: _Package = ".",
    go_version: _GoVersion = "",
    catalogue: _Files = None,
) -> None:
    """Build a program unless it is already built, and print its path."""
    recipe = _requested_program(name, module, package, catalogue)
    with build_display() as report:
        binary = ensure_built(recipe, cache_folder(), report, go_version=go_version)
    typer.echo(str(binary))


@app.command()
def path(
    name: _Name = None,
    module: _Module = None,
    package: _Package = ".",
    go_version: _GoVersion = "",
    catalogue: _Files = None,
) -> None:
    """Print the path of a program that has been built."""
    recipe = _requested_program(name, module, package, catalogue)
    binary = build_path(recipe, cache_folder(), go_version=go_version)
    if not binary.exists():
        program = name or (f"--module {module}" if package == "." else f"--module {module} --package {package}")
        with_go = f" --go-version {go_version}" if go_version else ""
        remedy = f"run `batkube schedulers build {program}{with_go}`"
        raise InputError(recipe.title, problem="has not been built", remedy=remedy)
    typer.echo(str(binary))


@contextlib.contextmanager
def build_display() -> Iterator[Callable[[str], None]]:
    """Yield a function that prints the steps of a build on standard error, on a terminal in a single line."""
    if sys.stderr.isatty():
        from batkube.text.console import EscapingConsole

        with EscapingConsole(stderr=True).status("building") as status:
            yield status.update
    else:
        yield lambda text: print(text, file=sys.stderr, flush=True)


def _requested_program(
    name: str | None, module: Path | None, package: str, catalogue: list[Path] | None
) -> BuildRecipe:
    if (name is None) == (module is None):
        raise InputError(
            "batkube schedulers",
            problem="needs either the name of a program or --module, not both",
            remedy="see `batkube schedulers list`",
        )
    if module is None:
        if package != ".":
            raise InputError(
                f"--package {package}", problem="requires --module", remedy="add --module DIR, or omit --package"
            )
        return find_recipe(name or "", user_catalogue(catalogue or []))
    if not (module / "go.mod").is_file():
        raise InputError(module, problem="is not a folder with a go.mod", remedy="use the root of a Go module")
    return local_recipe(module, package)
