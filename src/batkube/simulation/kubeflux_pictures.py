"""The picture that a KubeFlux of a run has of the cluster, read from its own files and compared with the cluster.

KubeFlux writes down each difference that it finds itself. A change that it has not heard of it cannot find, so its
whole picture is compared here as well, and differences that it has not written down are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.instants import Instant
from batkube.kubeflux.audit import Auditor, BeliefDifference, differences
from batkube.kubeflux.picture import NodeAccount, picture_file

_accounts = msgspec.json.Decoder(dict[str, NodeAccount])
Line = dict[str, Any]


class WrittenPicture:
    """The files of one KubeFlux."""

    def __init__(self, path: Path) -> None:
        """`path` is the file of the differences that it tells."""
        self._path = path
        self._read = 0
        #: What it knows to be wrong at present.
        self._known: set[BeliefDifference] = set()
        self._auditor = Auditor()

    def look(self, true: Mapping[str, NodeAccount], now: Instant) -> list[Line]:
        """Return what is new at a settled instant: what it told since the last one, and what it could not tell."""
        lines = self.news()
        picture = picture_file(self._path)
        if picture.is_file():
            wrong = set(differences(_accounts.decode(picture.read_bytes()), true))
            lines += self._signed(self._auditor.look(wrong - self._known, now))
        return lines

    def news(self) -> list[Line]:
        """Return what it told since it was last asked."""
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        self._read += len(text)
        lines = [msgspec.json.decode(line) for line in text.splitlines()]
        for line in lines:
            amounts = tuple(sorted(line["amounts"].items()))
            difference = BeliefDifference(line["kind"], line["node"], line["pod"], amounts)
            if line["is"] == "new":
                self._known.add(difference)
            else:
                self._known.discard(difference)
        return self._signed(lines)

    def _signed(self, lines: list[Line]) -> list[Line]:
        return [{**line, "scheduler": self._path.parent.name} for line in lines]
