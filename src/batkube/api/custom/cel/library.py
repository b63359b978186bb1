"""What Kubernetes adds to CEL for lists, sets, quantities, addresses, URLs and named formats.

Kubernetes: apiserver/pkg/cel/library/{lists,quantity,ip,cidr,urls,format}.go; cel-go: ext/{lists,sets}.go.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from batkube.api.custom.cel.lexing import Value
from batkube.api.custom.cel.operators import BINARY, compare
from batkube.api.custom.cel.values import NONE, CelError, Optional, contains, equal
from batkube.api.custom.formats import FORMATS
from batkube.api.validation import names
from batkube.kernel.quantities import Quantity, parse_quantity

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface

# Lists and sets


def _is_sorted(items: list[Any]) -> bool:
    return all(compare(left, right) <= 0 for left, right in itertools.pairwise(items))


def _sum(items: list[Any]) -> Value:
    return functools.reduce(BINARY["_+_"], items) if items else 0


def _extreme(items: list[Any], name: str, sign: int) -> Value:
    if not items:
        raise CelError(f"{name} called on empty list")
    return functools.reduce(lambda left, right: right if compare(right, left) * sign > 0 else left, items)


def _index_of(items: list[Any], wanted: Value) -> int:
    return next((index for index, item in enumerate(items) if equal(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Value) -> int:
    return max((index for index, item in enumerate(items) if equal(item, wanted)), default=-1)


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not contains(found, item):
            found.append(item)
    return found


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if isinstance(item, list):
            found += _flatten(item, depth - 1) if depth > 1 else item
        else:
            found.append(item)
    return found


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _sorted(items: list[Any]) -> list[Any]:
    return sorted(items, key=functools.cmp_to_key(compare))


def _set_contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item) for item in wanted)


_LISTS: list[tuple[str, tuple[type, ...], Callable[..., Any]]] = [
    ("isSorted", (list,), _is_sorted),
    ("sum", (list,), _sum),
    ("min", (list,), lambda items: _extreme(items, "min", -1)),
    ("max", (list,), lambda items: _extreme(items, "max", 1)),
    ("indexOf", (list, object), _index_of),
    ("lastIndexOf", (list, object), _last_index_of),
    ("distinct", (list,), _distinct),
    ("flatten", (list,), _flatten),
    ("flatten", (list, int), _flatten),
    ("slice", (list, int, int), _slice),
    ("sort", (list,), _sorted),
    ("reverse", (list,), lambda items: items[::-1]),
    ("first", (list,), lambda items: Optional(True, items[0]) if items else NONE),
    ("last", (list,), lambda items: Optional(True, items[-1]) if items else NONE),
    ("lists.range", (int,), lambda count: list(range(count))),
    ("sets.contains", (list, list), _set_contains),
    ("sets.intersects", (list, list), lambda items, others: any(contains(items, item) for item in others)),
    (
        "sets.equivalent",
        (list, list),
        lambda items, others: _set_contains(items, others) and _set_contains(others, items),
    ),
]

# Quantities


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError:
        raise CelError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def _is(reader: Callable[[str], Any], text: str) -> bool:
    try:
        reader(text)
    except CelError:
        return False
    return True


def _as_integer(quantity: Quantity) -> int:
    if quantity.nanos % 10**9:
        raise CelError("cannot convert value to integer")
    return quantity.nanos // 10**9


def _other(value: Quantity | int) -> Quantity:
    return value if isinstance(value, Quantity) else Quantity(value * 10**9)


_QUANTITIES: list[tuple[str, tuple[type, ...], Callable[..., Any]]] = [
    ("quantity", (str,), _quantity),
    ("isQuantity", (str,), lambda text: _is(_quantity, text)),
    ("sign", (Quantity,), lambda quantity: (quantity.nanos > 0) - (quantity.nanos < 0)),
    ("isInteger", (Quantity,), lambda quantity: quantity.nanos % 10**9 == 0),
    ("asInteger", (Quantity,), _as_integer),
    ("asApproximateFloat", (Quantity,), lambda quantity: quantity.nanos / 10**9),
    ("compareTo", (Quantity, Quantity), compare),
    ("isGreaterThan", (Quantity, Quantity), lambda left, right: left > right),
    ("isLessThan", (Quantity, Quantity), lambda left, right: left < right),
    ("add", (Quantity, Quantity), lambda left, right: left + right),
    ("add", (Quantity, int), lambda left, right: left + _other(right)),
    ("sub", (Quantity, Quantity), lambda left, right: left - right),
    ("sub", (Quantity, int), lambda left, right: left - _other(right)),
    ("string", (Quantity,), str),
]

# Addresses


def _ip(text: str) -> _Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise CelError(f'IP Address "{text}" parse error during conversion from string') from None


def _cidr(text: str) -> _Network:
    try:
        if "/" not in text:
            raise ValueError(text)
        return ipaddress.ip_interface(text)
    except ValueError:
        raise CelError(f'network address parse error during conversion from string: "{text}"') from None


def _holds(network: _Network, other: str | _Address | _Network) -> bool:
    if isinstance(other, str):
        other = _cidr(other) if "/" in other else _ip(other)
    if network.version != other.version:
        return False
    if isinstance(other, _Network):
        return other.network.subnet_of(network.network)  # type: ignore[arg-type]
    return other in network.network


_ADDRESSES: list[tuple[str, tuple[type, ...], Callable[..., Any]]] = [
    ("ip", (str,), _ip),
    ("isIP", (str,), lambda text: _is(_ip, text)),
    ("ip.isCanonical", (str,), lambda text: str(_ip(text)) == text),
    ("cidr", (str,), _cidr),
    ("isCIDR", (str,), lambda text: _is(_cidr, text)),
]
for _kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
    _ADDRESSES += [
        ("family", (_kind,), lambda address: address.version),
        ("isUnspecified", (_kind,), lambda address: address.is_unspecified),
        ("isLoopback", (_kind,), lambda address: address.is_loopback),
        ("isLinkLocalMulticast", (_kind,), lambda address: address.is_multicast and address.is_link_local),
        ("isLinkLocalUnicast", (_kind,), lambda address: address.is_link_local),
        ("isGlobalUnicast", (_kind,), lambda address: not (address.is_multicast or address.is_loopback)),
        ("string", (_kind,), str),
    ]
for _interface in (ipaddress.IPv4Interface, ipaddress.IPv6Interface):
    _ADDRESSES += [
        ("containsIP", (_interface, object), _holds),
        ("containsCIDR", (_interface, object), _holds),
        ("ip", (_interface,), lambda network: network.ip),
        ("masked", (_interface,), lambda network: ipaddress.ip_interface(str(network.network))),
        ("prefixLength", (_interface,), lambda network: network.network.prefixlen),
        ("string", (_interface,), str),
    ]

# URLs


def _url(text: str) -> SplitResult:
    if not FORMATS["uri"](text):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return urlsplit(text)


_URLS: list[tuple[str, tuple[type, ...], Callable[..., Any]]] = [
    ("url", (str,), _url),
    ("isURL", (str,), lambda text: _is(_url, text)),
    ("getScheme", (SplitResult,), lambda url: url.scheme),
    ("getHost", (SplitResult,), lambda url: url.netloc.rpartition("@")[2]),
    ("getHostname", (SplitResult,), lambda url: url.hostname or ""),
    ("getPort", (SplitResult,), lambda url: str(url.port) if url.port is not None else ""),
    ("getEscapedPath", (SplitResult,), lambda url: url.path),
    ("getQuery", (SplitResult,), lambda url: parse_qs(url.query, keep_blank_values=True)),
]

# Named formats


class NamedFormat(msgspec.Struct, frozen=True):
    """A format that texts can be validated against."""

    problems: Callable[[str], tuple[str, ...]]


def _by_schema(name: str) -> Callable[[str], tuple[str, ...]]:
    return lambda text: () if FORMATS[name](text) else (f"invalid {name}",)


_FORMATS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "dns1123Label": names.dns_label,
    "dns1123Subdomain": names.dns_subdomain,
    "dns1035Label": names.dns_1035_label,
    "qualifiedName": names.qualified_name,
    "labelValue": names.label_value,
    "dns1123LabelPrefix": lambda text: names.label_name(text, True),
    "dns1123SubdomainPrefix": lambda text: names.subdomain_name(text, True),
    "dns1035LabelPrefix": lambda text: names.label_1035_name(text, True),
    **{name: _by_schema(name) for name in ("uri", "uuid", "byte", "date", "datetime")},
}


def _validated(form: NamedFormat, text: str) -> Optional:
    problems = form.problems(text)
    return Optional(True, list(problems)) if problems else NONE


def _named(name: str) -> Optional:
    return Optional(True, NamedFormat(_FORMATS[name])) if name in _FORMATS else NONE


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


_NAMED: list[tuple[str, tuple[type, ...], Callable[..., Any]]] = [
    *((f"format.{name}", (), _constant(NamedFormat(problems))) for name, problems in _FORMATS.items()),
    ("format.named", (str,), _named),
    ("validate", (NamedFormat, str), _validated),
]

FUNCTIONS = [*_LISTS, *_QUANTITIES, *_ADDRESSES, *_URLS, *_NAMED]
"""Each function with the types that it takes."""
