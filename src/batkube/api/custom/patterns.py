r"""Regular expressions as Go writes them, run by Python's own engine.

Schemas and CEL rules hold patterns in RE2's syntax (Go: regexp/syntax). Python's is close, but not the same: `$` is the
very end of the text, `\z` exists, POSIX classes do, look-around and back-references do not. `compiled` rewrites what
differs, and refuses what Go refuses, in Go's words. Unicode classes such as `\p{Greek}` have no counterpart in Python;
a pattern with one that is not in the table below is `Unsupported`, and its user says so instead of guessing.
"""

from __future__ import annotations

import functools
import re

_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
#: Perl's classes cover ASCII only in Go.
_PERL_CLASSES = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "s": r"[\t\n\f\r ]",
    "S": r"[^\t\n\f\r ]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
}
_PERL_CLASS_MEMBERS = {letter: text[1:-1] for letter, text in _PERL_CLASSES.items() if letter.islower()}
#: Unicode classes that Python can express outside brackets.
_UNICODE_CLASSES = {"L": r"[^\W\d_]", "Letter": r"[^\W\d_]", "N": r"\d", "Nd": r"\d"}
_PLAIN_ESCAPES = frozenset("aftnrvbBAx01234567")

_repeat = re.compile(r"\{([0-9]+)(,([0-9]*))?\}").match
_MOST_REPEATS = 1000

_ERRORS = (
    (re.compile(r"missing \), unterminated subpattern|unexpected end of pattern"), "missing closing ): `{pattern}`"),
    (re.compile(r"unbalanced parenthesis"), "unexpected ): `{pattern}`"),
    (re.compile(r"unterminated character set"), "missing closing ]: `{rest}`"),
    (re.compile(r"nothing to repeat"), "missing argument to repetition operator: `{operator}`"),
    (re.compile(r"multiple repeat"), "invalid nested repetition operator: `{operators}`"),
    (re.compile(r"bad character range (?P<what>.+)"), "invalid character class range: `{what}`"),
    (re.compile(r"bad escape \(end of pattern\)"), "trailing backslash at end of expression: ``"),
    (re.compile(r"bad escape (?P<what>.+)"), "invalid escape sequence: `{what}`"),
)


class Malformed(ValueError):
    """Go refuses the pattern; the text is Go's own."""


class Unsupported(ValueError):
    """Go knows the pattern and Python does not."""


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the pattern ready to `search` with; raises Malformed or Unsupported."""
    translated = _Translation(pattern).text()
    try:
        return re.compile(translated)
    except re.error as error:
        raise Malformed(_in_go_words(pattern, error)) from None


def _in_go_words(pattern: str, error: re.error) -> str:
    start = error.pos if error.pos is not None and error.pos <= len(pattern) else 0
    for python, go in _ERRORS:
        match = python.search(error.msg)
        if match:
            problem = go.format(
                pattern=pattern,
                rest=pattern[start:],
                operator=pattern[start : start + 1],
                operators=pattern[max(start - 1, 0) : start + 1],
                what=match.groupdict().get("what", ""),
            )
            return f"error parsing regexp: {problem}"
    return f"error parsing regexp: {error.msg}: `{pattern}`"


class _Translation:
    """One pass over a pattern, from Go's syntax to Python's."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []

    def text(self) -> str:
        """Return the pattern for Python."""
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "\\":
                self._escape()
            elif char == "[":
                self._brackets()
            elif self.pattern.startswith("(?", self.at):
                self._group()
            elif (repeat := _repeat(self.pattern, self.at)) is not None:
                self._repeat(repeat)
            else:
                # Go's $ is the end of the text; Python's is also before a last newline.
                self.out.append(r"\Z" if char == "$" else char)
                self.at += 1
        return "".join(self.out)

    def _repeat(self, repeat: re.Match[str]) -> None:
        """Copy `{2,5}`; RE2 repeats a thousand times at most."""
        low, high = int(repeat[1]), int(repeat[3] or repeat[1])
        if low > _MOST_REPEATS or high > _MOST_REPEATS or low > high:
            raise Malformed(f"error parsing regexp: invalid repeat count: `{repeat[0]}`")
        self.out.append(repeat[0])
        self.at = repeat.end()

    def _escape(self) -> None:
        following = self.pattern[self.at + 1 : self.at + 2]
        if following in _PERL_CLASSES:
            self.out.append(_PERL_CLASSES[following])
        elif following == "z":
            self.out.append(r"\Z")
        elif following in ("p", "P"):
            self._unicode_class(following)
            return
        elif following == "Q":
            self._quoted()
            return
        else:
            self.out.append(self._plain_escape(following))
        self.at += 2

    def _plain_escape(self, following: str) -> str:
        """Return an escape that means the same to both; Go has no back-references."""
        if following == "x" and self.pattern[self.at + 2 : self.at + 3] == "{":
            end = self.pattern.find("}", self.at)
            code = self.pattern[self.at + 3 : end]
            self.at = end - 1
            return re.escape(chr(int(code, 16)))
        if following.isalnum() and (following not in _PLAIN_ESCAPES or following in "1234567"):
            raise Malformed(f"error parsing regexp: invalid escape sequence: `\\{following}`")
        return "\\" + following

    def _unicode_class(self, letter: str) -> None:
        end = self.pattern.find("}", self.at) if self.pattern[self.at + 2 : self.at + 3] == "{" else self.at + 2
        name = self.pattern[self.at + 2 : end + 1].strip("{}")
        if letter == "P" or name not in _UNICODE_CLASSES:
            raise Unsupported(rf"the class \{letter}{{{name}}} is not known here")
        self.out.append(_UNICODE_CLASSES[name])
        self.at = end + 1

    def _quoted(self) -> None:
        end = self.pattern.find(r"\E", self.at)
        literal = self.pattern[self.at + 2 :] if end < 0 else self.pattern[self.at + 2 : end]
        self.out.append(re.escape(literal))
        self.at = len(self.pattern) if end < 0 else end + 2

    def _group(self) -> None:
        """Copy `(?:`, flags and named groups; refuse look-around, which RE2 has not."""
        rest = self.pattern[self.at :]
        if rest.startswith("(?P<") or (rest.startswith("(?<") and len(rest) > 3):
            begin = 4 if rest.startswith("(?P<") else 3
            end = rest.find(">")
            if end < 0 or not rest[begin:end].isidentifier():
                raise Malformed(
                    f"error parsing regexp: invalid named capture: `{rest if end < 0 else rest[: end + 1]}`"
                )
            self.out.append(f"(?P<{rest[begin:end]}>")
            self.at += end + 1
            return
        flags = re.match(r"\(\?([imsU]*)(-[imsU]+)?([:)])", rest)
        if flags is None:
            known = re.match(r"\(\?[-imsU]*", rest)
            length = (known.end() if known else 2) + 1
            raise Malformed(f"error parsing regexp: invalid or unsupported Perl syntax: `{rest[:length]}`")
        if "U" in flags[0]:
            raise Unsupported("the flag U is not known here")
        if flags[3] == ")" and flags[2] is None:
            self._flags_to_the_end(flags[1])
            return
        self.out.append(flags[0])
        self.at += flags.end()

    def _flags_to_the_end(self, flags: str) -> None:
        """Write `(?i)rest` as `(?i:rest)`: Python takes bare flags at the start only."""
        self.at += len(flags) + 3
        depth_end = self._end_of_enclosing_group()
        inner = _Translation(self.pattern[self.at : depth_end])
        self.out.append(f"(?{flags}:{inner.text()})" if flags else inner.text())
        self.at = depth_end

    def _end_of_enclosing_group(self) -> int:
        depth, at = 0, self.at
        while at < len(self.pattern):
            char = self.pattern[at]
            if char == "\\":
                at += 1
            elif char == "(":
                depth += 1
            elif char == ")":
                if depth == 0:
                    return at
                depth -= 1
            at += 1
        return at

    def _brackets(self) -> None:
        """Copy a character class, with POSIX and Perl classes spelled out."""
        start, at = self.at, self.at + 1
        out = ["["]
        if self.pattern.startswith("^", at):
            out.append("^")
            at += 1
        first = True
        while at < len(self.pattern) and (first or self.pattern[at] != "]"):
            first = False
            posix = re.compile(r"\[:(\^?)([a-z]+):\]").match(self.pattern, at)
            if posix:
                if posix[1] or posix[2] not in _POSIX_CLASSES:
                    raise Malformed(f"error parsing regexp: invalid character class range: `{posix[0]}`")
                out.append(_POSIX_CLASSES[posix[2]])
                at = posix.end()
            elif self.pattern[at] == "\\":
                letter = self.pattern[at + 1 : at + 2]
                if letter in "pP":
                    raise Unsupported("a Unicode class between brackets is not known here")
                out.append(_PERL_CLASS_MEMBERS.get(letter, "\\" + letter))
                at += 2
            else:
                char = self.pattern[at]
                out.append("\\" + char if char in "[&~|" else char)
                at += 1
        if at >= len(self.pattern):
            raise Malformed(f"error parsing regexp: missing closing ]: `{self.pattern[start:]}`")
        self.out.append("".join(out) + "]")
        self.at = at + 1
