"""What to build: a program, the Go module that it comes from, and the go.mod that builds it.

A program is a main package of a published module, or of a folder of the user's. A module that replaces others cannot
simply be required, because only the main module's `replace` lines count: it is built in a copy (`GoMod.COPY`).
k8s.io/kubernetes replaces its libraries by folders of its repository, which are not published with it, but as modules
of their own with a matching version (`GoMod.KUBERNETES`).
"""

from __future__ import annotations

import enum
import os
import re
from pathlib import Path

import msgspec

_STAGED = re.compile(r"(k8s\.io/[\w.-]+) => \./staging/src/[\w./-]+")


class GoMod(enum.Enum):
    """Where the go.mod of a build comes from."""

    #: A new one that requires the module.
    REQUIRE = "require"
    #: Kubernetes' own, with its staged libraries replaced by the published ones.
    KUBERNETES = "kubernetes"
    #: The module's own, in a copy of the module: its `replace` lines count only there.
    COPY = "copy"


class BuildRecipe(msgspec.Struct, frozen=True):
    """A program to build."""

    name: str
    module: str
    version: str
    #: The import path of the main package; "" if `main` is its source.
    package: str
    main: str = ""
    #: More source files of the build's own module, by their path in it.
    extra_sources: tuple[tuple[str, str], ...] = ()
    go_mod: GoMod = GoMod.REQUIRE
    #: Variables set at link time, so that the program knows its version.
    variables: tuple[tuple[str, str], ...] = ()
    #: Whether it is built with the overlay, and so can run on virtual time.
    virtual: bool = True
    #: The oldest Go that builds it.
    go: str = ""
    #: Modules that are required but nowhere to be had any more, and not really used.
    missing_modules: tuple[str, ...] = ()
    #: Modules that are taken in another version than its go.mod says, and their versions.
    replaced_modules: tuple[tuple[str, str], ...] = ()
    #: The user's own module; `module` and `version` are "" then.
    folder: Path | None = None
    #: Folders and files of the module with the definitions of its kinds, which are kept with the program.
    definitions: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """`kubectl@1.34.4`."""
        version = self.version.removeprefix("v")
        return f"{self.name}@{version}" if version else self.name


def local_recipe(folder: Path, package: str) -> BuildRecipe:
    """Return the program of a folder's module; `package` is relative to it, such as `./cmd/scheduler`."""
    folder = folder.resolve()
    if (folder / package).is_dir() and not package.startswith("/"):
        package = os.path.normpath(package)
        if not package.startswith("."):
            package = f"./{package}"  # as Go wants it, or it would look elsewhere
    needed = re.search(r"^go (1\.\d+\S*)", (folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    return BuildRecipe(
        (folder / package).resolve().name, "", "", package, go=needed[1] if needed else "", folder=folder
    )


def go_mod(wanted: BuildRecipe, own: str) -> str:
    """Return the go.mod that builds a program; `own` is that of its module."""
    text = own
    if wanted.go_mod is GoMod.REQUIRE:
        text = f"module batkube/build\n\ngo 1.24.0\n\nrequire {wanted.module} {wanted.version}\n"
    elif wanted.go_mod is GoMod.KUBERNETES:
        library = "v0" + wanted.version.removeprefix("v1")
        text = re.sub(r"^module .*$", "module batkube/build", own, count=1, flags=re.MULTILINE)
        text = _STAGED.sub(lambda match: f"{match[1]} => {match[1]} {library}", text)
        text = text.replace("require (", f"require (\n\t{wanted.module} {wanted.version}", 1)
    others = {module: f"./{stand_in_folder(module)}" for module in wanted.missing_modules}
    others |= {module: f"{module} {version}" for module, version in wanted.replaced_modules}
    for module, other in others.items():
        text = re.sub(rf"^(replace|)\s*{re.escape(module)} => .*\n", "", text, flags=re.MULTILINE)
        text += f"\nreplace {module} => {other}\n"
    return text


def stand_in_folder(module: str) -> str:
    """Return the folder of a build in which an empty module stands in for one that is gone."""
    return "missing/" + module.replace("/", "_")
