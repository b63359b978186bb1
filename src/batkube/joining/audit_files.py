"""The output files of an auditor: one for differences, and one for the cache of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.files.replacement import replace_on_success
from batkube.kubeflux.scheduler_cache import NodeAccount, cache_file


class AuditFiles:
    """The files of one auditor. Existing ones are overwritten."""

    def __init__(self, path: Path) -> None:
        """Open the file of differences. Raises InputError."""
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise InputError(path, problem=f"cannot be written: {error.strerror}", remedy="check --audit") from error
        self._picture = cache_file(path)

    def __enter__(self) -> AuditFiles:
        """Return the files themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        self._file.close()

    def write_differences(self, lines: list[dict[str, object]]) -> None:
        """Append a line of JSON for each difference that is new or over."""
        for line in lines:
            self._file.write(msgspec.json.encode(line) + b"\n")
        if lines:
            self._file.flush()

    def write_cache(self, accounts: Mapping[str, NodeAccount]) -> None:
        """Replace the cache file."""
        with replace_on_success(self._picture) as partial:
            partial.write_bytes(msgspec.json.encode(accounts))
