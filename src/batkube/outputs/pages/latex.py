r"""Tables for papers: LaTeX with booktabs, nothing else.

A file holds one `tabular`, to be put into a `table` of the paper's own with `\input`. Numbers are set in mathematics,
with thin spaces between thousands, and stand to the right. `\usepackage{booktabs}` is all it takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "τ": r"$\tau$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≈": r"$\approx$",
    "★": r"$\star$",
    "✗": r"$\dagger$",
    "‡": r"$\ddagger$",
    "¶": r"\P{}",
    "…": r"\dots{}",
    "–": "--",
    "−": "$-$",
}
#: Marks of tables, as they stand after what they mark.
LATEX_SIGNS = {
    "": "",
    "*": "$^*$",
    "★": r"$^\star$",
    "≈": r"$^\approx$",
    "✗": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "¶": r"$^\P$",
    "§": r"$^\S$",
}
_CHARACTERS = re.compile("|".join(re.escape(character) for character in _SPECIAL))
_NUMBER = re.compile(r"([+-]?)(\d[\d,]*(?:\.\d+)?)")


def escape(text: str) -> str:
    """Return a text as LaTeX shows it; what the usual encodings lack becomes a question mark."""
    plain = "".join(one if one in _SPECIAL or ord(one) < 0x180 else "?" for one in text)
    return _CHARACTERS.sub(lambda match: _SPECIAL[match[0]], plain)


def footnote(sign: str, meaning: str) -> str:
    """Return the line below a table that says what a sign means."""
    return f"{LATEX_SIGNS[sign]} {escape(meaning)}"


def math_number(text: str) -> str:
    r"""Return a number as mathematics: `1,234.5` is `$1\,234.5$`; any other text as it is."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return escape(text)
    return f"${match[1]}{match[2].replace(',', chr(92) + ',')}$"


def tabular(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: int = 1,
    remark: str = "",
    below: int = 0,
    notes: Sequence[str] = (),
) -> str:
    """Return the table; cells are LaTeX already. The first `texts` columns stand to the left, numbers to the right.

    A rule stands below the first `below` rows, if any: after those the table tells of something else. `notes`
    (LaTeX) stand under the table, a line each; the lines of `remark` are comments.
    """
    columns = "l" * texts + "r" * (len(headings) - texts)
    lines = [f"% {line}" for line in remark.splitlines()]
    lines += [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", " & ".join(headings) + r" \\", r"\midrule"]
    for place, row in enumerate(rows):
        if below and place == below:
            lines.append(r"\midrule")
        lines.append(" & ".join(row) + r" \\")
    lines.append(r"\bottomrule")
    lines += [rf"\multicolumn{{{len(headings)}}}{{@{{}}l@{{}}}}{{\footnotesize {note}}} \\" for note in notes]
    return "\n".join([*lines, r"\end{tabular}", ""])
