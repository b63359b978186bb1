"""Warnings as headers of an answer: once each, and not more than a client can be expected to read.

Kubernetes: apiserver/pkg/endpoints/filters/warning.go and apimachinery/pkg/util/net (NewWarningHeader).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: So many characters may all warnings have together; beyond that, each of them is cut.
_MAX_TOTAL_LENGTH = 4096
_MAX_TRUNCATED_LENGTH = 256
_find_unprintable = re.compile("[\x00-\x1f\x7f-\x9f]").search


def warning_headers(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the `Warning` headers (RFC 7234, code 299) for some warnings."""
    distinct = [text for text in dict.fromkeys(texts) if text]
    if sum(map(len, distinct)) > _MAX_TOTAL_LENGTH:
        distinct = _truncate(distinct)
    return tuple(("Warning", f"299 - {_quoted(text)}") for text in distinct if not _find_unprintable(text))


def _truncate(texts: list[str]) -> list[str]:
    """Return the beginnings of the first warnings: all up to the one that was too much, then as many as fit."""
    kept: list[str] = []
    whole = cut = 0
    for text in texts:
        if whole > _MAX_TOTAL_LENGTH and cut >= _MAX_TOTAL_LENGTH:
            break
        kept.append(text[:_MAX_TRUNCATED_LENGTH])
        whole += len(text)
        cut += len(kept[-1])
    return kept


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
