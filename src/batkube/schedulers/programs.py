"""Programs by name: what a line of the catalogue means for one version, to build it and to start it."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from batkube.kernel.errors import InputError
from batkube.schedulers.catalogue import Catalogue, Entry, Variant, read_catalogue
from batkube.schedulers.recipes import Program

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.\d+[\w.+-]*")


@functools.cache
def our_catalogue() -> Catalogue:
    """Return the catalogue without anything of the user's."""
    return read_catalogue()


def program(title: str, catalogue: Catalogue | None = None) -> Program:
    """Return the program called `NAME` or `NAME@VERSION`."""
    name, entry, version = find(title, catalogue)
    variant = _variant(entry, version)
    return Program(
        name,
        entry.module,
        f"v{version}",
        entry.package,
        main=entry.main,
        go_mod=entry.go_mod,
        variables=tuple((key, _fill(text, version)) for key, text in entry.variables.items()),
        virtual=entry.virtual,
        go=variant.go,
        missing=variant.missing,
    )


def find(title: str, catalogue: Catalogue | None = None) -> tuple[str, Entry, str]:
    """Return the name, entry and version that a title means."""
    entries = our_catalogue() if catalogue is None else catalogue
    name, _, version = title.partition("@")
    entry = entries.get(name)
    if entry is None:
        raise InputError(title, problem="there is no such program", remedy=f"choose one of {', '.join(entries)}")
    version = version.removeprefix("v") or entry.default
    if not _VERSION.fullmatch(version):
        problem = f"{version} is no version of {name}"
        raise InputError(title, problem=problem, remedy=f"write {name}@{entry.default}")
    return name, entry, version


def start_arguments(title: str, kubeconfig: Path, configuration: Path, catalogue: Catalogue | None = None) -> list[str]:
    """Return the arguments that a program is started with; `start_configuration` is what is in the file."""
    _, entry, version = find(title, catalogue)
    places = {"kubeconfig": str(kubeconfig), "configuration": str(configuration)}
    return [_fill(text, version, places) for text in entry.arguments]


def start_configuration(title: str, kubeconfig: Path, catalogue: Catalogue | None = None) -> dict[str, Any]:
    """Return the content of a program's configuration file; empty if it wants none."""
    _, entry, version = find(title, catalogue)
    content = {**entry.configuration, **_variant(entry, version).configuration}
    filled: dict[str, Any] = _fill_all(content, version, {"kubeconfig": str(kubeconfig)})
    return filled


def _variant(entry: Entry, version: str) -> Variant:
    """Return what a version needs; one that is not listed, what another patch release of its minor version does."""
    if version in entry.versions:
        return entry.versions[version]
    minor = version.rsplit(".", 1)[0] + "."
    return next((variant for known, variant in entry.versions.items() if known.startswith(minor)), Variant())


def _fill(text: str, version: str, places: dict[str, str] | None = None) -> str:
    major, minor, _ = version.split(".", 2)
    for name, value in {"version": version, "major": major, "minor": minor, **(places or {})}.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _fill_all(value: Any, version: str, places: dict[str, str]) -> Any:  # noqa: ANN401 - any YAML
    if isinstance(value, dict):
        return {key: _fill_all(each, version, places) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill_all(each, version, places) for each in value]
    return _fill(value, version, places) if isinstance(value, str) else value
