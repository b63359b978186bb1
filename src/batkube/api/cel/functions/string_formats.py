"""The string formats of schemas, and their checks.

Unknown formats are ignored. A format that is new in a Kubernetes version is enforced from the next version on, so that
a server can be rolled back. Format names are compared without dashes.

Kubernetes: apiextensions-apiserver/pkg/apiserver/validation/formats.go; the checks are in
kube-openapi/pkg/validation/strfmt.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?{kind}[0-9a-f]{3}-?{variant}[0-9a-f]{3}-?[0-9a-f]{12}"
_HEX = "[0-9a-f]"
_COLOR_VALUE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"

_is_date = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_is_time_of_day = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.DOTALL
).fullmatch
_is_go_duration = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)").fullmatch
_find_durations = re.compile(r"(?<!\d)(\d+)\s*([A-Za-zµ]+)", re.ASCII).finditer
_is_mac = re.compile(
    rf"{_HEX}{{2}}([:-]){_HEX}{{2}}(\1{_HEX}{{2}}){{4}}((\1{_HEX}{{2}}){{2}}|(\1{_HEX}{{2}}){{14}})?"
    rf"|{_HEX}{{4}}(\.{_HEX}{{4}}){{2}}((\.{_HEX}{{4}}){{1}}|(\.{_HEX}{{4}}){{7}})?",
    re.IGNORECASE,
).fullmatch
_is_card = re.compile(
    "4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    "|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11}"
).fullmatch
_is_mail_address = re.compile(
    r"""\s*("[^"]+"|[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*)"""
    r"@([\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*|\[[^\]]+\])\s*"
).fullmatch
_is_hostname = re.compile(
    "[a-zA-Z0-9$](-?[a-zA-Z0-9$]{0,62})?|([a-zA-Z0-9$]([-a-zA-Z0-9$]{0,61}[a-zA-Z0-9$])?[.])+[a-zA-Z]{2,63}"
).fullmatch
_is_scheme = re.compile("[A-Za-z][A-Za-z0-9+.-]*").fullmatch
#: A unit of time is any word with one of these prefixes, or exactly one of the abbreviations.
_UNIT_WORDS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_UNITS = frozenset(("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"))


def _matching(pattern: str, flags: int = re.ASCII) -> Callable[[str], bool]:
    match = re.compile(pattern, flags).fullmatch
    return lambda text: match(text) is not None


def _uuid(kind: str, variant: str) -> Callable[[str], bool]:
    return _matching(_UUID.replace("{kind}", kind).replace("{variant}", variant), re.ASCII | re.IGNORECASE)


def _date(text: str) -> bool:
    if not _is_date(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        # Go's years begin at 0.
        return text.startswith("0000-") and _date("2000-" + text[5:])
    return True


def _date_time(text: str) -> bool:
    """Lower-case and split at `t`; the parts of the time are compared as strings, as in Go."""
    date, *rest = text.lower().split("t")
    if len(text) < 4 or not rest or not _date(date):
        return False
    match = _is_time_of_day(rest[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _duration(text: str) -> bool:
    """Go's notation, or numbers with units in words: `3 days`, `1 hour 5 min`."""
    if _is_go_duration(text):
        return True
    for match in _find_durations(text):
        unit = match[2].lower()
        if unit in _UNITS or unit.startswith(_UNIT_WORDS):
            return True
    return False


def _without_leading_zeros(address: str) -> str:
    """Remove leading zeros from an IPv4 address; Kubernetes tolerates them, Python does not."""
    if ":" in address:
        return address
    return ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in address.split("."))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _ipv4(text: str) -> bool:
    return "." in text and _is_address(_without_leading_zeros(text))


def _ipv6(text: str) -> bool:
    return ":" in text and _is_address(text)


def _cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isascii() or not bits.isdigit() or not _is_address(_without_leading_zeros(address)):
        return False
    return len(bits) <= 3 and int(bits) <= (128 if ":" in address else 32)


def _uri(text: str) -> bool:
    """An absolute URI or an absolute path (Go: url.ParseRequestURI)."""
    if not text or any(ord(char) < 0x21 or ord(char) == 0x7F for char in text):
        return False
    if text == "*" or text.startswith("/"):
        return True
    scheme, colon, _ = text.partition(":")
    if not colon or not _is_scheme(scheme):
        return False
    try:
        _ = urlsplit(text).port
    except ValueError:
        return False
    return re.search("%(?![0-9A-Fa-f]{2})", text) is None


def _email(text: str) -> bool:
    """An address, alone or as `A Name <address>` (Go: mail.ParseAddress)."""
    named = re.fullmatch(r"[^<>@,]*<([^<>]+)>", text)
    return _is_mail_address(named[1] if named else text) is not None


def _hostname(text: str) -> bool:
    """A single label, or labels of letters, symbols, digits and dashes of which the last has letters only."""
    if len(text.encode()) > 255 or any(len(part.encode()) > 63 for part in text.split(".")):
        return False
    return _is_hostname("".join(_ascii_equivalent(char) for char in text)) is not None


def _ascii_equivalent(char: str) -> str:
    """Return an ASCII character of the same Unicode class, because kube-apiserver's pattern uses Unicode classes."""
    kind = unicodedata.category(char)[0]
    return char if char.isascii() and kind != "S" else {"L": "a", "S": "$"}.get(kind, "_")


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if char == "X" else int(char) for char in digits]
    return sum(place * value for place, value in enumerate(values, start=1)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum((1, 3)[place % 2] * int(char) for place, char in enumerate(digits)) % 10 == 0


def _credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _is_card(digits):
        return False
    doubled = [int(char) * (1 + place % 2) for place, char in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matching("[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "mac": lambda text: _is_mac(text) is not None,
    "uuid": _uuid("[0-9a-f]", "[0-9a-f]"),
    "uuid3": _uuid("3", "[0-9a-f]"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, re.ASCII) is not None,
    "hexcolor": _matching("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matching(rf"rgb\(\s*{_COLOR_VALUE}\s*,\s*{_COLOR_VALUE}\s*,\s*{_COLOR_VALUE}\s*\)"),
    "byte": _matching("([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
}
"""The checks by the format's name without dashes."""


def find_format_check(name: str) -> Callable[[str], bool] | None:
    """Return the check of a format, or None if the server ignores the format."""
    return FORMATS.get(name.replace("-", ""))
