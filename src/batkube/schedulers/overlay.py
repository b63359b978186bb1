"""The overlay: files of Go's standard library with small edits, and additional files, for one toolchain.

`go build -overlay` substitutes source files, including those of package runtime. A program's clock can thus be changed
without touching its source or the Go installation. The edited files are generated from the toolchain that builds the
program; only the edits and the additional files are part of this repository.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from batkube.kernel.errors import RunFailed
from batkube.schedulers.overlay_edits import EDITS, MAP_ORDER, RAW_SYSCALLS

#: Minor versions of Go whose runtime the edits fit.
SUPPORTED_MINORS = range(24, 28)


def overlay_files(goroot: Path) -> dict[str, str]:
    """Return the files to replace in or add to GOROOT/src, by path."""
    version = go_version(goroot)
    files: dict[str, str] = {}
    for edit in EDITS:
        text = files.get(edit.file) or _read(goroot, version, edit.file)
        if text.count(edit.find) != 1:
            count = text.count(edit.find)
            raise RunFailed(
                f"the virtual clock does not fit {version}: {edit.file} has this {count} times, not once: {edit.find!r}"
            )
        files[edit.file] = text.replace(edit.find, edit.replacement)
    files.update(_map_order_files(goroot, version))
    files.update(_added_files(goroot))
    return files


def overlay_digest(files: Mapping[str, str]) -> str:
    """Return a digest of the overlay, which is part of the key of a build."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def write_overlay(files: Mapping[str, str], goroot: Path, folder: Path) -> Path:
    """Write the overlay into `folder`; return the path of the JSON file for `go build -overlay`."""
    folder = folder.resolve()
    replacements: dict[str, str] = {}
    for name, text in sorted(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        replacements[str(goroot / "src" / name)] = str(path)
    listing = folder / "overlay.json"
    listing.write_text(json.dumps({"Replace": replacements}, indent=1), encoding="utf-8")
    return listing


def go_version(goroot: Path) -> str:
    """Return the version of a Go installation, such as `go1.26.8`. Raises RunFailed if it is not supported."""
    version = (goroot / "VERSION").read_text(encoding="utf-8").split(maxsplit=1)[0]
    parts = version.removeprefix("go").replace("rc", ".").split(".")
    if parts[0] != "1" or not parts[1].isdigit() or int(parts[1]) not in SUPPORTED_MINORS:
        lowest, highest = SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1]
        raise RunFailed(f"the virtual clock supports Go 1.{lowest} to 1.{highest}, not {version}")
    return version


def go_source_folder() -> Path:
    """Return the folder of Batkube's Go files: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "go", package.parent.parent / "go"):
        if (folder / "_std").is_dir():
            return folder
    raise RunFailed("the Go files of the virtual clock are missing from this installation of Batkube")


def _map_order_files(goroot: Path, version: str) -> dict[str, str]:
    """Return Go's map files with the start of each key look-up edited."""
    files: dict[str, str] = {}
    for path in sorted((goroot / "src" / MAP_ORDER.file).glob("*.go")):
        text = path.read_text(encoding="utf-8")
        if MAP_ORDER.find in text and not path.name.endswith("_test.go"):
            files[f"{MAP_ORDER.file}/{path.name}"] = text.replace(MAP_ORDER.find, MAP_ORDER.replacement)
    if not files:
        raise RunFailed(
            f"the virtual clock does not fit {version}: {MAP_ORDER.file} lacks this text: {MAP_ORDER.find!r}"
        )
    return files


def _added_files(goroot: Path) -> dict[str, str]:
    folder = go_source_folder() / "_std"
    newer, name, older_name = RAW_SYSCALLS
    is_older = not (goroot / "src" / newer).is_dir()
    files: dict[str, str] = {}
    for path in sorted(folder.rglob("*.go")):
        text = path.read_text(encoding="utf-8")
        files[path.relative_to(folder).as_posix()] = text.replace(name, older_name) if is_older else text
    return files


def _read(goroot: Path, version: str, file: str) -> str:
    try:
        return (goroot / "src" / file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RunFailed(f"the virtual clock does not fit {version}: it has no {file}") from None
