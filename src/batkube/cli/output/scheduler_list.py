"""The text of `batkube schedulers list`: available programs, existing builds and their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from batkube.schedulers.build.records import BuildRecord, CachedBuild
from batkube.schedulers.catalogue import Catalogue, CatalogueEntry


def list_lines(
    catalogue: Catalogue, builds: Sequence[CachedBuild], stale: Sequence[CachedBuild], folder: Path
) -> Iterator[str]:
    """Yield the lines of the list; outdated builds (`stale`) are only counted."""
    records = [(build.record, build.size_bytes) for build in builds if build.record is not None]
    for name, entry in catalogue.items():
        remark = "" if entry.virtual else " (on real time)"
        yield f"{name:<24} {entry.about}{remark}"
        yield from _version_lines(entry, [(record, size) for record, size in records if _is_build_of(record, name)])
    local_builds = [(record, size) for record, size in records if record.is_local]
    if local_builds:
        yield "your own modules"
    for record, size in local_builds:
        package = "" if record.package == "." else f" --package {record.package}"
        yield f"  --module {_abbreviate_home(record.source)}{package}: {_details(record, size)}"
    total = sum(build.size_bytes for build in builds)
    yield f"{len(builds)} built, {megabytes_text(total)}, in {_abbreviate_home(str(folder))}"
    if stale:
        size_text = megabytes_text(sum(build.size_bytes for build in stale))
        yield f"{len(stale)} outdated, {size_text}: `batkube schedulers prune` removes them"


def megabytes_text(size_bytes: int) -> str:
    """Return a size in megabytes."""
    return f"{size_bytes / 1e6:,.0f} MB"


def _is_build_of(record: BuildRecord, name: str) -> bool:
    return record.name == name and not record.is_local


def _version_lines(entry: CatalogueEntry, builds: Sequence[tuple[BuildRecord, int]]) -> Iterator[str]:
    """Yield a line for each version in the catalogue, then for each other version that is built."""
    others = [record.version for record, _ in builds if record.version not in entry.versions]
    for version in dict.fromkeys([*(entry.versions or [entry.default]), *others]):
        details = [_details(record, size) for record, size in builds if record.version == version]
        default = "  (default)" if version == entry.default else ""
        yield f"  {version:<10} {' · '.join(details) or '–'}{default}"


def _details(record: BuildRecord, size_bytes: int) -> str:
    return f"built {f'with {record.go}' if record.go else 'for real time'}, {megabytes_text(size_bytes)}"


def _abbreviate_home(path: str) -> str:
    home = str(Path.home())
    return path.replace(home, "~", 1) if path.startswith(home + "/") else path
