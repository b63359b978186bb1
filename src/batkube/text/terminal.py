"""Foreign text on a terminal: control characters in names, paths and logs are printed as `\\x1b`, never interpreted."""

from __future__ import annotations

import io
import re

#: Control characters but tab and newline (Unicode: Cc), and those that reorder text (UAX 9, explicit formatting).
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return the text with control characters as Python writes them: `\\x1b`."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class EscapingStream(io.TextIOWrapper):
    """A text stream that escapes everything that is printed on it."""

    def write(self, text: str, /) -> int:
        """Write the text escaped."""
        super().write(visible(text))
        return len(text)

    @property
    def rich_proxied_file(self) -> UnescapedStream:
        """The stream on which rich writes its own control sequences (rich.console, Console.file)."""
        return UnescapedStream(self)


class UnescapedStream:
    """The same stream without escapes."""

    def __init__(self, stream: EscapingStream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text unchanged."""
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
