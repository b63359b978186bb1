"""The catalogue of programs that can be built or started by name: Batkube's own entries and the user's."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from batkube.cluster.kinds import KubernetesVersion
from batkube.files.yaml_reader import read_yaml
from batkube.kernel.errors import InputError
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.recipes import GoMod

_DEFAULT_FILE = Path(__file__).with_name("catalogue.yaml")

GroupVersion = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.-]+/v[0-9a-z]+$")]
"""For example `policy/v1beta1`."""
AbsolutePath = Annotated[str, msgspec.Meta(pattern="^/.*[^/]$")]
"""For example `/etc/kueue/certs`."""


class VersionVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Settings of one version."""

    go: str = ""
    missing: tuple[str, ...] = ()
    #: Modules to use in another version than go.mod requires, for example because a replaced folder is not published.
    replace: dict[str, str] = {}
    #: Deprecated API versions that it uses and that current Kubernetes no longer serves.
    needs: tuple[GroupVersion, ...] = ()
    #: The version of Kubernetes whose API it needs; "" for that of the entry.
    kubernetes: KubernetesVersion | Literal[""] = ""
    #: Fields of its configuration file that differ.
    configuration: dict[str, Any] = {}
    #: Paths of its definitions, if they differ.
    definitions: tuple[str, ...] = ()
    #: Bind mounts by path, for folders that it expects as in its container.
    mounts: dict[AbsolutePath, str] = {}


class CatalogueEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A program by name. Texts may contain `{version}`, `{major}`, `{minor}`, and placeholders of `ProgramStart`."""

    about: str
    #: The Go module that publishes it; "" for a `folder` of the user.
    module: str = ""
    folder: str = ""
    #: The command line of a program that is not built; paths that start with a dot are relative to the catalogue file.
    command: tuple[str, ...] = ()
    #: How the program reads the run's clock.
    clock: ClockKind = ClockKind.GO
    #: The local port on which it expects `kubectl proxy`, and whether it expects the API as in a pod.
    proxy_port: Annotated[int, msgspec.Meta(ge=0, lt=65536)] = 0
    in_cluster: bool = False
    #: The default version; a folder has none.
    default: str = ""
    #: The import path of the main package, or the source code of one.
    package: str = ""
    main: str = ""
    #: Additional source files of the build's own module, `batkube/build`, by path.
    beside: dict[str, str] = {}
    go_mod: GoMod = GoMod.REQUIRE
    #: Versions known to build; others may build too.
    versions: dict[str, VersionVariant] = {}
    variables: dict[str, str] = {}
    virtual: bool = True
    #: The `spec.schedulerName` of its pods; "" if it is not a scheduler.
    scheduler_name: str = ""
    arguments: tuple[str, ...] = ()
    #: The content of its configuration file, if it has one.
    configuration: dict[str, Any] = {}
    #: Whether it reacts to any change in the folder of its configuration file.
    watches_configuration: bool = False
    #: Additional files by name: texts, or objects to write as YAML.
    files: dict[str, str | dict[str, Any]] = {}
    #: Bind mounts by path, for folders that it expects as in its container.
    mounts: dict[AbsolutePath, str] = {}
    #: Environment variables, for settings that it reads only from there.
    environment: dict[str, str] = {}
    #: Deprecated API versions that it uses and that current Kubernetes no longer serves.
    needs: tuple[GroupVersion, ...] = ()
    #: The version of Kubernetes whose API it needs; "" for any.
    kubernetes: KubernetesVersion | Literal[""] = ""
    #: Folders and files of the module that contain its CustomResourceDefinitions.
    definitions: tuple[str, ...] = ()
    #: Objects that must exist before it starts.
    objects: tuple[dict[str, Any], ...] = ()
    #: Command lines of other programs that belong to it and are started with it.
    companions: tuple[str, ...] = ()
    #: How to submit jobs of several pods.
    submit_as: str = "pods"
    #: The API version of its PodGroups, and the annotation or the label that names the group of a pod.
    pod_group: str = ""
    pod_group_key: str = ""
    pod_group_label: str = ""


Catalogue = Mapping[str, CatalogueEntry]
_REMEDY = "see docs/reference/schedulers.md"


def read_catalogue(files: Sequence[Path] = ()) -> Catalogue:
    """Return Batkube's catalogue, extended and overridden by the user's files."""
    entries = dict(_default_entries())
    for path in files:
        entries |= _entries(path)
    return entries


@functools.cache
def _default_entries() -> Mapping[str, CatalogueEntry]:
    """Return the entries of Batkube's own file, which does not change at run time."""
    return _entries(_DEFAULT_FILE)


def _entries(path: Path) -> dict[str, CatalogueEntry]:
    content = read_yaml(path)
    if not isinstance(content, Mapping | None):
        raise InputError(path, problem="is not a mapping from names to programs", remedy=_REMEDY)
    return {str(name): _entry(path, str(name), entry) for name, entry in (content or {}).items()}


def _entry(path: Path, name: str, content: object) -> CatalogueEntry:
    try:
        entry = msgspec.convert(content, CatalogueEntry)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        key = place.strip("`").removeprefix("$")
        raise InputError(path, at=f"{name}{key}", problem=problem, remedy=_REMEDY) from error
    if sum(map(bool, (entry.module, entry.folder, entry.command))) != 1:
        raise InputError(path, at=name, problem="needs a `module`, a `folder` or a `command`", remedy=_REMEDY)
    if bool(entry.command) == (entry.clock is ClockKind.GO):
        problem = "a `command` needs a `clock` other than go, and only a `command` may have one"
        raise InputError(path, at=f"{name}.clock", problem=problem, remedy="use preload, python or real")
    if entry.pod_group_label and (entry.pod_group_key or not entry.pod_group):
        problem = "needs a `pod-group`" if not entry.pod_group else "cannot be combined with `pod-group-key`"
        remedy = "omit one: pod-group-key writes an annotation and a label, pod-group-label only a label"
        raise InputError(path, at=f"{name}.pod-group-label", problem=problem, remedy=remedy)
    if entry.module and not entry.default:
        raise InputError(path, at=name, problem="needs a `default` version", remedy=_REMEDY)
    folder = path.parent / Path(entry.folder).expanduser()
    if entry.folder and not (folder / "go.mod").is_file():
        problem = f"{folder} is not a folder with a go.mod"
        raise InputError(path, at=f"{name}.folder", problem=problem, remedy="use the root folder of a Go module")
    words = tuple(str(path.parent / word) if word.startswith(("./", "../")) else word for word in entry.command)
    module_folder = str(folder.resolve()) if entry.folder else ""
    return msgspec.structs.replace(entry, folder=module_folder, command=words)
