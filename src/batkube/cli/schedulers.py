"""`batkube schedulers`: the programs that can be built for virtual time, and building them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.caching import cache_folder
from batkube.kernel.errors import InputError
from batkube.schedulers.builds import build_path, built
from batkube.schedulers.catalogue import Catalogue, read_catalogue
from batkube.schedulers.programs import program
from batkube.schedulers.recipes import Program, local_program

app = typer.Typer(help="Build real schedulers, for virtual time.", no_args_is_help=True)

_Name = Annotated[str | None, typer.Argument(metavar="NAME[@VERSION]", help="A program of the catalogue.")]
_Files = Annotated[list[Path] | None, typer.Option("--catalogue", help="A YAML file with more programs.")]
_Module = Annotated[Path | None, typer.Option("--module", help="Build from the Go module in this folder instead.")]
_Package = Annotated[str, typer.Option("--package", help="The main package within --module, such as ./cmd/scheduler.")]
_GoVersion = Annotated[str, typer.Option("--go-version", help="The Go to build with, such as 1.25 or 1.26.8.")]


@app.command("list")
def list_programs(catalogue: _Files = None) -> None:
    """List the programs that can be built, with the versions known to build."""
    for name, entry in read_user_catalogue(catalogue or ()).items():
        if entry.virtual:
            typer.echo(f"{name:<26} {entry.about}")
            typer.echo(f"{'':<26} versions {', '.join(entry.versions)}; without one, {entry.default}")


@app.command()
def build(
    name: _Name = None,
    module: _Module = None,
    package: _Package = ".",
    go_version: _GoVersion = "",
    catalogue: _Files = None,
) -> None:
    """Build a program unless it is built already, and print its path."""
    wanted = _wanted(name, module, package, catalogue)
    with build_display() as report:
        binary = built(wanted, cache_folder(), report, go_version=go_version)
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
    wanted = _wanted(name, module, package, catalogue)
    binary = build_path(wanted, cache_folder(), go_version=go_version)
    if not binary.exists():
        command = f"batkube schedulers build {name}" if name else f"batkube schedulers build --module {module}"
        raise InputError(wanted.title, problem="has not been built", remedy=f"run `{command}`")
    typer.echo(str(binary))


def read_user_catalogue(files: list[Path] | tuple[Path, ...] = ()) -> Catalogue:
    """Return the catalogue with the user's own entries: of the configuration folder, then of the files given."""
    given = os.environ.get("XDG_CONFIG_HOME")  # noqa: TID251 - the command line reads the environment
    own = (Path(given) if given else Path.home() / ".config") / "batkube" / "schedulers.yaml"
    return read_catalogue([*([own] if own.exists() else []), *files])


@contextlib.contextmanager
def build_display() -> Iterator[Callable[[str], None]]:
    """Yield what shows the steps of a build on standard error: one changing line on a terminal, lines elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("building") as status:
            yield status.update
    else:
        yield lambda text: print(text, file=sys.stderr, flush=True)


def _wanted(name: str | None, module: Path | None, package: str, catalogue: list[Path] | None) -> Program:
    if (name is None) == (module is None):
        raise InputError(
            "batkube schedulers",
            problem="needs either the name of a program or --module",
            remedy="see `batkube schedulers list`",
        )
    if module is None:
        return program(name or "", read_user_catalogue(catalogue or []))
    if not (module / "go.mod").is_file():
        raise InputError(module, problem="is not a folder with a go.mod", remedy="give the root of a Go module")
    return local_program(module, package)
