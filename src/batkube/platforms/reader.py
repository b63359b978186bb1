"""Reads platforms: chooses the format by the file name, or parses a shorthand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.platforms.model import Platform
from batkube.platforms.shorthand import is_shorthand, parse_shorthand

if TYPE_CHECKING:
    from batkube.platforms.network import Network

_FILE_KINDS = (".xml", ".yaml", ".yml", ".json", ".csv")
_REMEDY = (
    "use a SimGrid file (.xml), Node manifests (.yaml, .yml, .json), an openb node list (.csv) "
    "or N x CPU[,MEMORY][,GPUS], such as 16x4"
)


def is_file_spec(spec: str) -> bool:
    """Return whether `spec` is a path, and not a shorthand."""
    return Path(spec).suffix.lower() in _FILE_KINDS or not is_shorthand(spec)


def read_platform(spec: str) -> Platform:
    """Return the platform of a path, or of a shorthand such as `16x4,64Gi`. Raise InputError."""
    path = Path(spec)
    kind = path.suffix.lower()
    if kind not in _FILE_KINDS:
        if is_shorthand(spec):
            return parse_shorthand(spec)
        raise InputError(spec or "(nothing)", problem="is not a platform", remedy=_REMEDY)
    content = _read_bytes(path)
    # Imported lazily, because the other readers would use memory for nothing.
    if kind == ".xml":
        from batkube.platforms.simgrid.machines import parse_simgrid

        return parse_simgrid(path, content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            path, at=f"byte {error.start}", problem="is not UTF-8 text", remedy="save it as UTF-8"
        ) from None
    if kind == ".csv":
        from batkube.platforms.openb import parse_openb_nodes

        return parse_openb_nodes(path, text)
    from batkube.platforms.manifests import parse_manifests

    return parse_manifests(path, text)


def read_network(path: Path) -> Network:
    """Return the network of a SimGrid platform file. Raise InputError."""
    if path.suffix.lower() != ".xml":
        raise InputError(path, problem="is not a SimGrid platform file", remedy="use an .xml file with hosts and links")
    from batkube.platforms.simgrid.network import parse_network

    return parse_network(path, _read_bytes(path))


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(path, problem="no such file", remedy=_REMEDY) from None
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}") from None
