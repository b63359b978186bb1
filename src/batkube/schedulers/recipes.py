"""Build recipes: a program, its Go module, and the go.mod that builds it.

A program is a main package of a published module or of a folder of the user. Only the main module's `replace` lines
count, so a module with such lines cannot simply be required: it is built in a copy (`GoMod.COPY`). k8s.io/kubernetes
replaces its libraries by folders of its repository. These are not published with it, but as separate modules with a
matching version (`GoMod.KUBERNETES`).
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
    """How to build a program."""

    name: str
    module: str
    version: str
    #: The import path of the main package; "" if `main` is its source.
    package: str
    main: str = ""
    #: Additional source files of the build's own module, by path.
    extra_sources: tuple[tuple[str, str], ...] = ()
    go_mod: GoMod = GoMod.REQUIRE
    #: Variables to set at link time, so that the program can print its version.
    variables: tuple[tuple[str, str], ...] = ()
    #: Whether it is built with the overlay, and so supports virtual time.
    virtual: bool = True
    #: The minimum version of Go.
    go: str = ""
    #: Modules that are required but no longer available, and not actually used.
    missing_modules: tuple[str, ...] = ()
    #: Modules to use in another version than go.mod requires, with that version.
    replaced_modules: tuple[tuple[str, str], ...] = ()
    #: The user's folder; `module` and `version` are "" then.
    folder: Path | None = None
    #: Folders and files of the module with the definitions of its kinds, which are stored with the program.
    definitions: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the build, such as `kubectl@1.34.4`."""
        version = self.version.removeprefix("v")
        return f"{self.name}@{version}" if version else self.name


def local_recipe(folder: Path, package: str) -> BuildRecipe:
    """Return the recipe of a program in a folder's module; `package` is relative to it, such as `./cmd/scheduler`."""
    folder = folder.resolve()
    if (folder / package).is_dir() and not package.startswith("/"):
        package = os.path.normpath(package)
        if not package.startswith("."):
            package = f"./{package}"  # otherwise Go would search the standard library
    go_line = re.search(r"^go (1\.\d+\S*)", (folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    return BuildRecipe(
        (folder / package).resolve().name, "", "", package, go=go_line[1] if go_line else "", folder=folder
    )


def go_mod(recipe: BuildRecipe, module_go_mod: str) -> str:
    """Return the go.mod that builds a program; `module_go_mod` is that of its module."""
    text = module_go_mod
    if recipe.go_mod is GoMod.REQUIRE:
        text = f"module batkube/build\n\ngo 1.24.0\n\nrequire {recipe.module} {recipe.version}\n"
    elif recipe.go_mod is GoMod.KUBERNETES:
        library = "v0" + recipe.version.removeprefix("v1")
        text = re.sub(r"^module .*$", "module batkube/build", module_go_mod, count=1, flags=re.MULTILINE)
        text = _STAGED.sub(lambda match: f"{match[1]} => {match[1]} {library}", text)
        text = text.replace("require (", f"require (\n\t{recipe.module} {recipe.version}", 1)
    replacements = {module: f"./{stand_in_folder(module)}" for module in recipe.missing_modules}
    replacements |= {module: f"{module} {version}" for module, version in recipe.replaced_modules}
    for module, replacement in replacements.items():
        text = re.sub(rf"^(replace|)\s*{re.escape(module)} => .*\n", "", text, flags=re.MULTILINE)
        text += f"\nreplace {module} => {replacement}\n"
    return text


def stand_in_folder(module: str) -> str:
    """Return the folder of a build with an empty module in place of an unavailable one."""
    return "missing/" + module.replace("/", "_")
