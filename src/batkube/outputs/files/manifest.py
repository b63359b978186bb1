"""manifest.json: what was run, enough to run it again, and which files the run wrote.

The files are listed with their sizes and SHA-256 hashes, for two questions: is a result still what the run wrote, and
what may be removed when a new run takes its place. Nothing that is not listed is ever removed. The manifest holds a
hash of its own content too, so that a list that somebody has edited is not believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.files.replacement import replace_on_success
from batkube.outputs.files.file_list import FileList, file_digest

MANIFEST = "manifest.json"
#: Keys of the manifest: which version of ours wrote it, the list, and the hash of all that stands before it.
_VERSION, _FILES, _SEAL = "batkube", "files", "seal"


def write_manifest(folder: Path, content: Mapping[str, object], *, living: Collection[str] = ()) -> None:
    """Write the manifest of the run in `folder`, once all its other files are there.

    The files called `living` go on being written to, so only their names are kept.
    """
    write_json(folder / MANIFEST, _with_seal({**content, _FILES: FileList.of(folder, living).files}))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what the manifest of a run holds; nothing when there is none that can be read, or it is not of ours."""
    try:
        content = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
    return content if isinstance(content, dict) and isinstance(content.get(_VERSION), str) else {}


def run_description_in(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest says of its run, without the list of files and the hash, which are made anew elsewhere."""
    return {key: value for key, value in manifest.items() if key not in (_FILES, _SEAL)}


def file_list_in(manifest: Mapping[str, Any]) -> FileList | None:
    """Return the list of files that a manifest holds; None if it has none, or is not as it was written."""
    unsealed = {key: value for key, value in manifest.items() if key != _SEAL}
    if not isinstance(manifest.get(_FILES), dict) or _with_seal(unsealed) != manifest:
        return None
    return FileList({**manifest[_FILES], MANIFEST: None})


def add_to_manifest(path: Path) -> None:
    """Have the manifest list a file that was made from the run and lies beside it; elsewhere there is nothing to do."""
    manifest = read_manifest(path.parent)
    if file_list_in(manifest) is None:
        return
    manifest.pop(_SEAL)
    manifest[_FILES][path.name] = file_digest(path)
    with replace_on_success(path.parent / MANIFEST) as partial:
        write_json(partial, _with_seal(manifest))


def _with_seal(content: Mapping[str, object]) -> dict[str, Any]:
    """Return `content` as JSON has it, with its own hash at the end."""
    encoded = msgspec.json.encode(content)
    return {**msgspec.json.decode(encoded), _SEAL: hashlib.sha256(encoded).hexdigest()}


def fingerprint(path: Path) -> dict[str, str]:
    """Return an input file's path and SHA-256."""
    return {"path": str(path), "sha256": file_digest(path)["sha256"]}


def to_json(content: object) -> bytes:
    """Return `content` as JSON, indented, keys in the order given."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def write_json(path: Path, content: object) -> None:
    """Write `content` indented, keys in the order given."""
    path.write_bytes(to_json(content))
