"""Programs by name: what a line of the catalogue means for one version, to build it and to start it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.schedulers.catalogue import Catalogue, CatalogueEntry, VersionVariant, read_catalogue
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.recipes import BuildRecipe, local_recipe

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
    #: Whether it takes every change in the folder of its configuration for one of it.
    watches_configuration: bool = False
    #: More files that it reads, by name.
    files: Mapping[str, str | dict[str, Any]] = {}
    #: Folders that it looks for at places of the file system, as in its container.
    mounts: Mapping[str, str] = {}
    #: Environment variables, for what it takes from nowhere else.
    environment: Mapping[str, str] = {}
    #: Folders and files of its module that hold the definitions of its own kinds.
    definitions: tuple[str, ...] = ()
    #: The user's folder that it is built from; "" for one that is published.
    folder: str = ""
    #: What must exist before it starts.
    objects: tuple[dict[str, Any], ...] = ()
    #: The command lines of the programs that belong to it.
    companions: tuple[str, ...] = ()
    #: How jobs of several pods are given to it.
    submit_as: str = "pods"
    #: The API version of its PodGroups, and the annotation, or else the label, by which a pod names its group.
    pod_group: str = ""
    pod_group_key: str = ""
    pod_group_label: str = ""
    #: What gives it its time.
    clock: ClockKind = ClockKind.GO
    #: What its command line begins with, if it is not built.
    command: tuple[str, ...] = ()
    #: The port on the loopback where it takes `kubectl proxy` to be; 0 if it does not.
    proxy_port: int = 0
    #: Whether it looks for the API as one does in a pod.
    in_cluster: bool = False
    #: Whether it is one of our own catalogue. Of those it is known that they create no nodes.
    is_ours: bool = False

    @property
    def configuration_flags(self) -> list[str]:
        """The arguments that name its configuration file, without what they name: `--config`."""
        return [text.partition("=")[0] for text in self.arguments if "{configuration}" in text]

    @property
    def has_profiles(self) -> bool:
        """Whether its configuration tells by profiles which pods it serves."""
        return self.configuration.get("kind") == "KubeSchedulerConfiguration"


@functools.cache
def default_catalogue() -> Catalogue:
    """Return the catalogue without anything of the user's."""
    return read_catalogue()


def find_recipe(title: str, catalogue: Catalogue | None = None) -> BuildRecipe:
    """Return the program called `NAME` or `NAME@VERSION`."""
    name, entry, version = find_entry(title, catalogue)
    if entry.command:
        raise InputError(title, problem="is started by a command, and there is nothing to build", remedy="run it")
    if entry.folder:
        return local_recipe(Path(entry.folder), entry.package or ".")
    variant = _variant(entry, version)
    return BuildRecipe(
        name,
        entry.module,
        f"v{version}",
        entry.package,
        main=entry.main,
        extra_sources=tuple(entry.beside.items()),
        go_mod=entry.go_mod,
        variables=tuple(fill_placeholders(entry.variables, _version_placeholders(version)).items()),
        virtual=entry.virtual,
        go=variant.go,
        missing_modules=variant.missing,
        replaced_modules=tuple(variant.replace.items()),
        definitions=variant.definitions or entry.definitions,
    )


def find_entry(title: str, catalogue: Catalogue | None = None) -> tuple[str, CatalogueEntry, str]:
    """Return the name, entry and version that a title means."""
    entries = default_catalogue() if catalogue is None else catalogue
    name, at, version = title.partition("@")
    entry = entries.get(name)
    if entry is None:
        raise InputError(title, problem="there is no such program", remedy=f"choose one of {', '.join(entries)}")
    version = version.removeprefix("v")
    if at and not entry.module:
        origin = "built from a folder" if entry.folder else "started by a command"
        raise InputError(title, problem=f"{name} is {origin}, which has no versions", remedy=f"write {name}")
    if not entry.module:
        return name, entry, ""
    if at and not version:
        remedy = f"write {name}@{entry.default}, or {name} alone, which means the same"
        raise InputError(title, problem="has no version after the @", remedy=remedy)
    version = version or entry.default
    if not _VERSION.fullmatch(version):
        problem = f"{version} is no version of {name}"
        raise InputError(title, problem=problem, remedy=f"write {name}@{entry.default}")
    return name, entry, version


def program_start(title: str, catalogue: Catalogue | None = None) -> ProgramStart:
    """Return how the program called `NAME` or `NAME@VERSION` is started."""
    _, entry, version = find_entry(title, catalogue)
    variant = _variant(entry, version)
    places = _version_placeholders(version)

    def filled(value: Any) -> Any:  # noqa: ANN401 - any YAML
        return fill_placeholders(value, places)

    return ProgramStart(
        tuple(filled(list(entry.arguments))),
        filled({**entry.configuration, **variant.configuration}),
        entry.scheduler_name,
        tuple(dict.fromkeys((*entry.needs, *variant.needs))),
        entry.virtual,
        watches_configuration=entry.watches_configuration,
        files=filled(entry.files),
        mounts=filled({**entry.mounts, **variant.mounts}),
        environment=filled(entry.environment),
        definitions=variant.definitions or entry.definitions,
        folder=entry.folder,
        objects=tuple(filled(list(entry.objects))),
        companions=tuple(filled(list(entry.companions))),
        submit_as=entry.submit_as,
        pod_group=entry.pod_group,
        pod_group_key=entry.pod_group_key,
        pod_group_label=entry.pod_group_label,
        clock=entry.clock,
        command=entry.command,
        proxy_port=entry.proxy_port,
        in_cluster=entry.in_cluster,
        is_ours=entry is default_catalogue().get(title.partition("@")[0]),
    )


def _variant(entry: CatalogueEntry, version: str) -> VersionVariant:
    """Return what a version needs; one that is not listed, what another patch release of its minor version does."""
    if version in entry.versions:
        return entry.versions[version]
    minor = version.rsplit(".", 1)[0] + "."
    return next((variant for known, variant in entry.versions.items() if known.startswith(minor)), VersionVariant())


def _fill_text(text: str, places: Mapping[str, str | int]) -> str | int:
    """Return a text with its places filled; one that is nothing but a place becomes a number where that is one."""
    for name, value in places.items():
        if text == f"{{{name}}}":
            return value
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _version_placeholders(version: str) -> dict[str, str]:
    """Return what stands for the version in texts; a folder has none."""
    major, minor, *_ = (*version.split(".", 2), "")
    return {"version": version, "major": major, "minor": minor}


def fill_placeholders(value: Any, places: Mapping[str, str | int]) -> Any:  # noqa: ANN401 - any YAML
    """Return `value` with each `{place}` that is known filled, in all its texts."""
    if isinstance(value, dict):
        return {key: fill_placeholders(each, places) for key, each in value.items()}
    if isinstance(value, list):
        return [fill_placeholders(each, places) for each in value]
    return _fill_text(value, places) if isinstance(value, str) else value
