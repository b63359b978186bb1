"""Go's `%q` and `%v`, which appear in error messages of kube-apiserver.

Errors about selectors, patches and validation contain values in these formats. Go: package fmt.
"""

from __future__ import annotations

_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def go_quote(text: str) -> str:
    """Format as Go's %q: printable characters stay, others are escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_SHORT_ESCAPES.get(char) or _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_value(value: object) -> str:
    """Format a JSON value as Go's %v: `map[a:1 b:[x y]]`, keys sorted, strings unquoted."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_value(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _go_float(value) if isinstance(value, float) else str(value)


def _go_float(number: float) -> str:
    """Format a float64 as Go's %v: shortest digits, an exponent only below 1e-4 and from 1e21 on."""
    if number and not 1e-4 <= abs(number) < 1e21:
        digits, exponent = repr(number).split("e") if "e" in repr(number) else f"{number:e}".split("e")
        return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}e{int(exponent):+03d}"
    if number == int(number):
        return str(int(number))
    return repr(number)
