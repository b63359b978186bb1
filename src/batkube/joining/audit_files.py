"""The output files of an audit: the differences, and the scheduler's cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from batkube.files.replacement import replace_on_success
from batkube.kernel.errors import InputError
from batkube.kubeflux.scheduler_cache import NodeAccount, cache_file


class AuditFiles:
    """The output files of one audit. Existing files are overwritten."""

    def __init__(self, path: Path) -> None:
        """Open the file of differences. Raises InputError."""
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise InputError(path, problem=f"cannot be written: {error.strerror}", remedy="check --audit") from error
        self._cache_path = cache_file(path)

    def __enter__(self) -> AuditFiles:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        self._file.close()

    def write_differences(self, lines: list[dict[str, object]]) -> None:
        """Append a JSON line for each new or resolved difference."""
        for line in lines:
            self._file.write(msgspec.json.encode(line) + b"\n")
        if lines:
            self._file.flush()

    def write_cache(self, accounts: Mapping[str, NodeAccount]) -> None:
        """Replace the cache file."""
        with replace_on_success(self._cache_path) as partial:
            partial.write_bytes(msgspec.json.encode(accounts))
