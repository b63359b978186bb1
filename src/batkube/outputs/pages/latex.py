r"""LaTeX tables for papers, which need `\usepackage{booktabs}` and no other package.

A file contains one `tabular`, to be included with `\input` in a `table` of a paper. Numbers are set in math mode, with
thin spaces between thousands, and right-aligned.
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
    "↕": r"$\updownarrow$",
    "✗": r"$\dagger$",
    "‡": r"$\ddagger$",
    "¶": r"\P{}",
    "…": r"\dots{}",
    "–": "--",
    "−": "$-$",
}
#: Marks in tables, as superscripts.
LATEX_SIGNS = {
    "": "",
    "*": "$^*$",
    "★": r"$^\star$",
    "≈": r"$^\approx$",
    "↕": r"$^\updownarrow$",
    "✗": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "¶": r"$^\P$",
    "§": r"$^\S$",
}
_CHARACTERS = re.compile("|".join(re.escape(character) for character in _SPECIAL))
_NUMBER = re.compile(r"([+-]?)(\d[\d,]*(?:\.\d+)?)")


def escape(text: str) -> str:
    """Return a text escaped for LaTeX; characters outside the usual encodings become question marks."""
    plain = "".join(char if char in _SPECIAL or ord(char) < 0x180 else "?" for char in text)
    return _CHARACTERS.sub(lambda match: _SPECIAL[match[0]], plain)


def footnote(sign: str, meaning: str) -> str:
    """Return the line below a table that explains a sign."""
    return f"{LATEX_SIGNS[sign]} {escape(meaning)}"


def math_number(text: str) -> str:
    r"""Return a number in math mode, such as `$1\,234.5$` for `1,234.5`; any other text is escaped."""
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
    """Return the table; cells are LaTeX already. The first `texts` columns are left-aligned, the others right-aligned.

    A rule separates the first `below` rows, if any, from the others. `notes` (LaTeX) stand under the table, a line
    each; the lines of `remark` become comments.
    """
    columns = "l" * texts + "r" * (len(headings) - texts)
    lines = [f"% {line}" for line in remark.splitlines()]
    lines += [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", " & ".join(headings) + r" \\", r"\midrule"]
    for number, row in enumerate(rows):
        if below and number == below:
            lines.append(r"\midrule")
        lines.append(" & ".join(row) + r" \\")
    lines.append(r"\bottomrule")
    lines += [rf"\multicolumn{{{len(headings)}}}{{@{{}}l@{{}}}}{{\footnotesize {note}}} \\" for note in notes]
    return "\n".join([*lines, r"\end{tabular}", ""])
