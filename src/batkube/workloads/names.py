"""Check the names in workloads of all formats.

Names of jobs, profiles and users end up in CSV files and on terminals, where a control character breaks a row or hides
text.
"""

from __future__ import annotations

import re

#: Control characters (C0, DEL, C1), line and paragraph separators, and lone surrogates, which UTF-8 cannot encode.
_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

REMEDY = "use printable characters only"


def name_problem(name: str) -> str | None:
    """Return the problem of a name with a control character; None for a valid name."""
    # Fast path: most names are digits, for which the search takes five times as long.
    match = None if name.isalnum() else _FORBIDDEN_CHARACTERS.search(name)
    return None if match is None else f"is {name!r}, which contains the control character {match[0]!r}"
