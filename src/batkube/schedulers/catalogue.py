"""The catalogue: which programs can be built by name. It is data, ours and the user's in the same form."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.files.yaml_reader import read_yaml
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.recipes import GoMod

_DEFAULT_FILE = Path(__file__).with_name("catalogue.yaml")

GroupVersion = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.-]+/v[0-9a-z]+$")]
"""Such as `policy/v1beta1`."""
AbsolutePath = Annotated[str, msgspec.Meta(pattern="^/.*[^/]$")]
"""Such as `/etc/kueue/certs`."""


class VersionVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What one version needs that others do not."""

    go: str = ""
    missing: tuple[str, ...] = ()
    #: Modules that are taken in another version than its go.mod says: a folder that is not published with it, say.
    replace: dict[str, str] = {}
    #: Versions of the API that it asks for and that today's Kubernetes does not serve any more.
    needs: tuple[GroupVersion, ...] = ()
    #: What differs in its configuration file.
    configuration: dict[str, Any] = {}
    #: Where its definitions are, if elsewhere.
    definitions: tuple[str, ...] = ()
    #: Folders that it looks for at places of the file system, as in its container.
    mounts: dict[AbsolutePath, str] = {}


class CatalogueEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A program by name. Texts may hold `{version}`, `{major}`, `{minor}`; see `programs` for those of a start."""

    about: str
    #: The module that it is published in; "" if it is in a `folder` of the user's.
    module: str = ""
    folder: str = ""
    #: The command line of one that is not built; a path in it that begins with a dot is relative to the file.
    command: tuple[str, ...] = ()
    #: What gives it its time.
    clock: ClockKind = ClockKind.GO
    #: The port on the loopback where it takes `kubectl proxy` to be, and whether it looks for the API as in a pod.
    proxy_port: Annotated[int, msgspec.Meta(ge=0, lt=65536)] = 0
    in_cluster: bool = False
    #: The version that is meant when none is given; a folder has none.
    default: str = ""
    #: The import path of the main package, or the source of one.
    package: str = ""
    main: str = ""
    #: More source files of the build's own module, `batkube/build`, by their path in it.
    beside: dict[str, str] = {}
    go_mod: GoMod = GoMod.REQUIRE
    #: The versions that are known to build; others may.
    versions: dict[str, VersionVariant] = {}
    variables: dict[str, str] = {}
    virtual: bool = True
    #: The `spec.schedulerName` of the pods that it serves; "" if it is no scheduler.
    scheduler_name: str = ""
    arguments: tuple[str, ...] = ()
    #: Its configuration file, if it wants one.
    configuration: dict[str, Any] = {}
    #: Whether it takes every change in the folder of its configuration for one of it.
    watches_configuration: bool = False
    #: More files that it reads, by name: texts, or what is written as YAML.
    files: dict[str, str | dict[str, Any]] = {}
    #: Folders that it looks for at places of the file system, as in its container.
    mounts: dict[AbsolutePath, str] = {}
    #: Environment variables, for what it takes from nowhere else.
    environment: dict[str, str] = {}
    #: Versions of the API that it asks for and that today's Kubernetes does not serve any more.
    needs: tuple[GroupVersion, ...] = ()
    #: Folders and files of the module that hold the definitions of its own kinds.
    definitions: tuple[str, ...] = ()
    #: What must exist before it starts.
    objects: tuple[dict[str, Any], ...] = ()
    #: Other programs, with their arguments, that belong to it and are started beside it.
    companions: tuple[str, ...] = ()
    #: How jobs of several pods are given to it.
    submit_as: str = "pods"
    #: The API version of its PodGroups, and the annotation or label by which a pod names its group, or the label alone.
    pod_group: str = ""
    pod_group_key: str = ""
    pod_group_label: str = ""


Catalogue = Mapping[str, CatalogueEntry]
_REMEDY = "see docs/reference/schedulers.md"


def read_catalogue(files: Sequence[Path] = ()) -> Catalogue:
    """Return our catalogue with the entries of the user's files, which come before ours."""
    entries = dict(_default_entries())
    for path in files:
        entries |= _entries(path)
    return entries


@functools.cache
def _default_entries() -> Mapping[str, CatalogueEntry]:
    """Return the entries of our own file, which does not change while we run."""
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
        problem = "a `command` has another `clock` than go, and only a `command` has"
        raise InputError(path, at=f"{name}.clock", problem=problem, remedy="preload, python or real")
    if entry.pod_group_label and (entry.pod_group_key or not entry.pod_group):
        problem = "needs a `pod-group`" if not entry.pod_group else "cannot be given together with `pod-group-key`"
        remedy = "leave out one: pod-group-key writes an annotation and a label, pod-group-label a label only"
        raise InputError(path, at=f"{name}.pod-group-label", problem=problem, remedy=remedy)
    if entry.module and not entry.default:
        raise InputError(path, at=name, problem="needs a `default` version", remedy=_REMEDY)
    folder = path.parent / Path(entry.folder).expanduser()
    if entry.folder and not (folder / "go.mod").is_file():
        problem = f"{folder} is not a folder with a go.mod"
        raise InputError(path, at=f"{name}.folder", problem=problem, remedy="give the root of a Go module")
    words = tuple(str(path.parent / word) if word.startswith(("./", "../")) else word for word in entry.command)
    own = str(folder.resolve()) if entry.folder else ""
    return msgspec.structs.replace(entry, folder=own, command=words)
