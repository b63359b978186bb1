"""Compare the cache of a KubeFlux with the cluster, from the files that it writes.

KubeFlux reports the differences that it detects itself. It cannot detect a change of which it was not notified, so the
whole cache is compared here, too, and differences that KubeFlux has not reported are added.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Instant
from batkube.kubeflux.audit import Auditor, CacheDifference, cache_differences
from batkube.kubeflux.scheduler_cache import NodeAccount, cache_file

_ACCOUNTS_DECODER = msgspec.json.Decoder(dict[str, NodeAccount])
AuditLine = dict[str, Any]


class KubeFluxAuditReader:
    """The files of one KubeFlux."""

    def __init__(self, path: Path) -> None:
        """`path` is the file in which KubeFlux reports differences."""
        self._path = path
        self._offset = 0
        #: The current differences that KubeFlux has reported.
        self._reported: set[CacheDifference] = set()
        self._auditor = Auditor()

    def check(self, true: Mapping[str, NodeAccount], now: Instant) -> list[AuditLine]:
        """Return the new differences at a settled instant, both reported and unreported ones."""
        lines = self.read_new_lines()
        cache_path = cache_file(self._path)
        if cache_path.is_file():
            wrong = set(cache_differences(_ACCOUNTS_DECODER.decode(cache_path.read_bytes()), true))
            lines += self._with_scheduler(self._auditor.update(wrong - self._reported, now))
        return lines

    def read_new_lines(self) -> list[AuditLine]:
        """Return the differences that KubeFlux has reported since the last call.

        Raises RunFailed if the file was cut, for example by a limit on file sizes: differences would be missing.
        """
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            is_shorter = file.seek(0, os.SEEK_END) < self._offset
            file.seek(self._offset)
            text = file.read()
        if is_shorter or (text and not text.endswith(b"\n")):
            raise RunFailed(
                f"{self._path.name} of {self._path.parent.name} is incomplete: it was cut while KubeFlux wrote it"
            )
        self._offset += len(text)
        lines = [msgspec.json.decode(line) for line in text.splitlines()]
        for line in lines:
            amounts = tuple(sorted(line["amounts"].items()))
            difference = CacheDifference(line["kind"], line["node"], line["pod"], amounts)
            if line["is"] == "new":
                self._reported.add(difference)
            else:
                self._reported.discard(difference)
        return self._with_scheduler(lines)

    def _with_scheduler(self, lines: list[AuditLine]) -> list[AuditLine]:
        return [{**line, "scheduler": self._path.parent.name} for line in lines]
