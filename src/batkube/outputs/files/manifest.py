"""manifest.json: what was run, in enough detail to repeat it, and which files the run wrote.

The list of files has sizes and SHA-256 hashes. It shows whether results were modified after the run, and which files
a new run may remove; a file that is not listed is never removed. The manifest also contains a hash of its content,
the seal, so that an edited list is not trusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.files.replacement import replace_on_success
from batkube.outputs.files.confinement import is_relative
from batkube.outputs.files.file_list import FileList, file_digest

MANIFEST = "manifest.json"
#: Keys of the manifest: the version of Batkube, the list of files, and the hash of everything before it.
_VERSION, _FILES, _SEAL = "batkube", "files", "seal"


def write_manifest(folder: Path, content: Mapping[str, object], *, mutable_files: Collection[str] = ()) -> None:
    """Write the manifest of the run in `folder`, after all its other files.

    The `mutable_files` may still change, so only their names are listed.
    """
    write_json(folder / MANIFEST, seal({**content, _FILES: FileList.of(folder, mutable_files).files}))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run; empty if it is missing, unreadable or not written by Batkube."""
    try:
        content = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return content if isinstance(content, dict) and isinstance(content.get(_VERSION), str) else {}


def run_description_in(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without the list of files and the seal, which differ in a copy."""
    return {key: value for key, value in manifest.items() if key not in (_FILES, _SEAL)}


def file_list_in(manifest: Mapping[str, Any]) -> FileList | None:
    """Return the list of files in a manifest; None if it has none, was edited, or lists a path outside its folder."""
    unsealed = {key: value for key, value in manifest.items() if key != _SEAL}
    if not isinstance(manifest.get(_FILES), dict) or seal(unsealed) != manifest:
        return None
    if not all(map(is_relative, manifest[_FILES])):
        return None
    return FileList({**manifest[_FILES], MANIFEST: None})


def add_to_manifest(path: Path) -> None:
    """List a derived file in the manifest beside it; do nothing if there is no valid one."""
    manifest = read_manifest(path.parent)
    if file_list_in(manifest) is None:
        return
    manifest.pop(_SEAL)
    manifest[_FILES][path.name] = file_digest(path)
    with replace_on_success(path.parent / MANIFEST) as partial:
        write_json(partial, seal(manifest))


def seal(content: Mapping[str, object]) -> dict[str, Any]:
    """Return `content` as JSON values, with its hash as the last entry."""
    encoded = msgspec.json.encode(content)
    return {**msgspec.json.decode(encoded), _SEAL: hashlib.sha256(encoded).hexdigest()}


def fingerprint(path: Path) -> dict[str, str]:
    """Return an input file's path and SHA-256."""
    return {"path": str(path), "sha256": file_digest(path)["sha256"]}


def to_json(content: object) -> bytes:
    """Return `content` as indented JSON, keys in the given order."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def write_json(path: Path, content: object) -> None:
    """Write `content` as indented JSON, keys in the given order."""
    path.write_bytes(to_json(content))
