"""Programs by name: what a line of the catalogue means for one version, to build it and to start it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.schedulers.catalogue import Catalogue, Entry, Variant, read_catalogue
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.recipes import Program

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.\d+[\w.+-]*")


class ProgramStart(msgspec.Struct, frozen=True):
    """How a program is started. `{kubeconfig}` and the like are still open: each run has its own."""

    arguments: tuple[str, ...]
    #: The content of its configuration file; empty if it needs none.
    configuration: dict[str, Any]
    #: The `spec.schedulerName` of the pods that it serves; "" if it is no scheduler.
    scheduler_name: str
    #: Versions of the API that it asks for and that today's Kubernetes does not serve any more.
    needs: tuple[str, ...] = ()
    #: Whether it is built for virtual time.
    virtual: bool = True
    #: What gives it its time.
    clock: ClockKind = ClockKind.GO

    @property
    def configuration_flags(self) -> list[str]:
        """The arguments that name its configuration file, without what they name: `--config`."""
        return [text.partition("=")[0] for text in self.arguments if "{configuration}" in text]

    @property
    def has_profiles(self) -> bool:
        """Whether its configuration tells by profiles which pods it serves."""
        return self.configuration.get("kind") == "KubeSchedulerConfiguration"


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
        beside=tuple(entry.beside.items()),
        go_mod=entry.go_mod,
        variables=tuple((key, _fill(text, _of_version(version))) for key, text in entry.variables.items()),
        virtual=entry.virtual,
        go=variant.go,
        missing=variant.missing,
    )


def find(title: str, catalogue: Catalogue | None = None) -> tuple[str, Entry, str]:
    """Return the name, entry and version that a title means."""
    entries = our_catalogue() if catalogue is None else catalogue
    name, at, version = title.partition("@")
    entry = entries.get(name)
    if entry is None:
        raise InputError(title, problem="there is no such program", remedy=f"choose one of {', '.join(entries)}")
    version = version.removeprefix("v")
    if at and not version:
        remedy = f"write {name}@{entry.default}, or {name} alone, which means the same"
        raise InputError(title, problem="has no version after the @", remedy=remedy)
    version = version or entry.default
    if not _VERSION.fullmatch(version):
        problem = f"{version} is no version of {name}"
        raise InputError(title, problem=problem, remedy=f"write {name}@{entry.default}")
    return name, entry, version


def start_of(title: str, catalogue: Catalogue | None = None) -> ProgramStart:
    """Return how the program called `NAME` or `NAME@VERSION` is started."""
    _, entry, version = find(title, catalogue)
    variant = _variant(entry, version)
    content: dict[str, Any] = fill_all({**entry.configuration, **variant.configuration}, _of_version(version))
    arguments = tuple(_fill(text, _of_version(version)) for text in entry.arguments)
    return ProgramStart(arguments, content, entry.scheduler_name, variant.needs, entry.virtual)


def _variant(entry: Entry, version: str) -> Variant:
    """Return what a version needs; one that is not listed, what another patch release of its minor version does."""
    if version in entry.versions:
        return entry.versions[version]
    minor = version.rsplit(".", 1)[0] + "."
    return next((variant for known, variant in entry.versions.items() if known.startswith(minor)), Variant())


def _fill(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _of_version(version: str) -> dict[str, str]:
    major, minor, _ = version.split(".", 2)
    return {"version": version, "major": major, "minor": minor}


def fill_all(value: Any, places: Mapping[str, str]) -> Any:  # noqa: ANN401 - any YAML
    """Return `value` with each `{place}` that is known filled, in all its texts."""
    if isinstance(value, dict):
        return {key: fill_all(each, places) for key, each in value.items()}
    if isinstance(value, list):
        return [fill_all(each, places) for each in value]
    return _fill(value, places) if isinstance(value, str) else value
