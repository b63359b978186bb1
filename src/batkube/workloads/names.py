"""What a name in a workload may not hold, whatever the format.

Names of jobs, profiles and users end up in CSV files and on terminals, where a control character breaks a row or hides
what is there.
"""

from __future__ import annotations

import re

#: Control characters (C0, DEL, C1), the line and paragraph separators, and lone surrogates, which no file can hold.
_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

REMEDY = "use printable characters only"


def name_problem(name: str) -> str | None:
    """Return what is wrong with a name that holds a control character; None when nothing is."""
    # Most are digits, which a search would take five times as long for.
    match = None if name.isalnum() else _FORBIDDEN_CHARACTERS.search(name)
    return None if match is None else f"is {name!r}, which holds the control character {match[0]!r}"
