"""Warning headers of responses, without duplicates and limited in length.

Kubernetes: apiserver/pkg/endpoints/filters/warning.go and apimachinery/pkg/util/net (NewWarningHeader).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Maximal length of all warnings together; beyond it, each warning is truncated.
_MAX_TOTAL_LENGTH = 4096
_MAX_TRUNCATED_LENGTH = 256
_find_unprintable = re.compile("[\x00-\x1f\x7f-\x9f]").search


def warning_headers(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return a `Warning` header (RFC 7234, code 299) for each distinct text."""
    distinct = [text for text in dict.fromkeys(texts) if text]
    if sum(map(len, distinct)) > _MAX_TOTAL_LENGTH:
        distinct = _truncate(distinct)
    return tuple(("Warning", f"299 - {_quoted(text)}") for text in distinct if not _find_unprintable(text))


def _truncate(texts: list[str]) -> list[str]:
    """Truncate each warning, and drop those that still exceed the total length."""
    truncated: list[str] = []
    full_length = length = 0
    for text in texts:
        if full_length > _MAX_TOTAL_LENGTH and length >= _MAX_TOTAL_LENGTH:
            break
        truncated.append(text[:_MAX_TRUNCATED_LENGTH])
        full_length += len(text)
        length += len(truncated[-1])
    return truncated


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
