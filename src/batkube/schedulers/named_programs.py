"""Programs by name: turns a catalogue entry and a version into a build recipe and a start."""

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
from batkube.text.suggestions import suggestion

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.\d+[\w.+-]*")


class ProgramStart(msgspec.Struct, frozen=True):
    """How to start a program. Placeholders such as `{kubeconfig}` are filled for each run."""

    arguments: tuple[str, ...]
    #: The content of its configuration file; empty if it needs none.
    configuration: dict[str, Any]
    #: The `spec.schedulerName` of its pods; "" if it is not a scheduler.
    scheduler_name: str
    #: Deprecated API versions that it uses and that current Kubernetes no longer serves.
    needs: tuple[str, ...] = ()
    #: The version of Kubernetes whose API it needs; "" for any.
    kubernetes: str = ""
    #: Whether it supports virtual time.
    virtual: bool = True
    #: Whether it reacts to any change in the folder of its configuration file.
    watches_configuration: bool = False
    #: Additional files by name.
    files: Mapping[str, str | dict[str, Any]] = {}
    #: Bind mounts by path, for folders that it expects as in its container.
    mounts: Mapping[str, str] = {}
    #: Environment variables, for settings that it reads only from there.
    environment: Mapping[str, str] = {}
    #: Folders and files of its module that contain its CustomResourceDefinitions.
    definitions: tuple[str, ...] = ()
    #: The user's folder it is built from; "" for a published module.
    folder: str = ""
    #: Objects that must exist before it starts.
    objects: tuple[dict[str, Any], ...] = ()
    #: Command lines of the programs that belong to it.
    companions: tuple[str, ...] = ()
    #: How to submit jobs of several pods.
    submit_as: str = "pods"
    #: The API version of its PodGroups, and the annotation or the label that names the group of a pod.
    pod_group: str = ""
    pod_group_key: str = ""
    pod_group_label: str = ""
    #: How the program reads the run's clock.
    clock: ClockKind = ClockKind.GO
    #: The start of its command line, if it is not built.
    command: tuple[str, ...] = ()
    #: The local port on which it expects `kubectl proxy`; 0 if it does not.
    proxy_port: int = 0
    #: Whether it expects the API as in a pod.
    in_cluster: bool = False
    #: Whether it is in Batkube's own catalogue, whose programs are known to create no nodes.
    is_built_in: bool = False

    @property
    def configuration_flags(self) -> list[str]:
        """The flags that take its configuration file, such as `--config`."""
        return [text.partition("=")[0] for text in self.arguments if "{configuration}" in text]

    @property
    def has_profiles(self) -> bool:
        """Whether profiles in its configuration define which pods it serves."""
        return self.configuration.get("kind") == "KubeSchedulerConfiguration"


@functools.cache
def default_catalogue() -> Catalogue:
    """Return the catalogue without the user's entries."""
    return read_catalogue()


def find_recipe(title: str, catalogue: Catalogue | None = None) -> BuildRecipe:
    """Return the build recipe of `NAME` or `NAME@VERSION`."""
    name, entry, version = find_entry(title, catalogue)
    if entry.command:
        raise InputError(
            title, problem="is started by a command; there is nothing to build", remedy="use it without building"
        )
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
    """Return the name, entry and version of `NAME` or `NAME@VERSION`."""
    entries = default_catalogue() if catalogue is None else catalogue
    name, at, version = title.partition("@")
    entry = entries.get(name)
    if entry is None:
        remedy = f"{suggestion(name, entries)}; `batkube schedulers list` shows all"
        raise InputError(title, problem="is not a program of the catalogue", remedy=remedy)
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
        problem = f"{version} is not a version of {name}"
        raise InputError(title, problem=problem, remedy=f"write {name}@{entry.default}")
    return name, entry, version


def program_start(title: str, catalogue: Catalogue | None = None) -> ProgramStart:
    """Return how to start `NAME` or `NAME@VERSION`."""
    _, entry, version = find_entry(title, catalogue)
    variant = _variant(entry, version)
    values = _version_placeholders(version)

    def filled(value: Any) -> Any:  # noqa: ANN401 - any YAML
        return fill_placeholders(value, values)

    return ProgramStart(
        tuple(filled(list(entry.arguments))),
        filled({**entry.configuration, **variant.configuration}),
        entry.scheduler_name,
        tuple(dict.fromkeys((*entry.needs, *variant.needs))),
        variant.kubernetes or entry.kubernetes,
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
        is_built_in=entry is default_catalogue().get(title.partition("@")[0]),
    )


def _variant(entry: CatalogueEntry, version: str) -> VersionVariant:
    """Return the settings of a version; an unlisted one has those of another patch release of its minor version."""
    if version in entry.versions:
        return entry.versions[version]
    minor = version.rsplit(".", 1)[0] + "."
    return next((variant for listed, variant in entry.versions.items() if listed.startswith(minor)), VersionVariant())


def _fill_text(text: str, values: Mapping[str, str | int]) -> str | int:
    """Fill the placeholders of a text; a text that is a single placeholder gets the type of its value."""
    for name, value in values.items():
        if text == f"{{{name}}}":
            return value
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _version_placeholders(version: str) -> dict[str, str]:
    """Return the version placeholders of a catalogue entry; they are empty for a folder."""
    major, minor, *_ = (*version.split(".", 2), "")
    return {"version": version, "major": major, "minor": minor}


def fill_placeholders(value: Any, values: Mapping[str, str | int]) -> Any:  # noqa: ANN401 - any YAML
    """Return `value` with all known placeholders filled, at any depth."""
    if isinstance(value, dict):
        return {key: fill_placeholders(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_placeholders(item, values) for item in value]
    return _fill_text(value, values) if isinstance(value, str) else value
