"""Kubernetes' CEL libraries: lists, sets, quantities, IPs, CIDRs, URLs and named formats.

Kubernetes: apiserver/pkg/cel/library/{lists,quantity,ip,cidr,urls,format}.go; cel-go: ext/sets.go and cel/library.go.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from batkube.api.cel.functions.operators import BINARY, compare
from batkube.api.cel.functions.string_formats import FORMATS
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.values import OPTIONAL_NONE, CelError, CelOptional, NamedFormat, contains, equal
from batkube.api.validation import names
from batkube.kernel.quantities import Quantity, parse_quantity

_Functions = list[tuple[str, str, Callable[..., Any]]]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface

# Lists and sets

_SUMMABLE = ("int", "uint", "double", "duration")
_ORDERED = (*_SUMMABLE, "bool", "string", "bytes", "timestamp")


def _is_sorted(items: list[Any]) -> bool:
    return all(compare(left, right) <= 0 for left, right in itertools.pairwise(items))


def _sum(items: list[Any]) -> Value:
    return functools.reduce(BINARY["_+_"], items) if items else 0


def _min(items: list[Any]) -> Value:
    return _extremum(items, "min", -1)


def _max(items: list[Any]) -> Value:
    return _extremum(items, "max", 1)


def _extremum(items: list[Any], name: str, sign: int) -> Value:
    if not items:
        raise CelError(f"{name} called on empty list")
    return functools.reduce(lambda left, right: right if compare(right, left) * sign > 0 else left, items)


def _index_of(items: list[Any], wanted: Value) -> int:
    return next((index for index, item in enumerate(items) if equal(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Value) -> int:
    return max((index for index, item in enumerate(items) if equal(item, wanted)), default=-1)


def _set_contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item) for item in wanted)


def _intersects(items: list[Any], others: list[Any]) -> bool:
    return any(contains(items, item) for item in others)


def _equivalent(items: list[Any], others: list[Any]) -> bool:
    return _set_contains(items, others) and _set_contains(others, items)


_LIST_FUNCTIONS: _Functions = [
    *(("isSorted", f"list({kind}).() -> bool", _is_sorted) for kind in _ORDERED),
    *(("sum", f"list({kind}).() -> {kind}", _sum) for kind in _SUMMABLE),
    *(("min", f"list({kind}).() -> {kind}", _min) for kind in _ORDERED),
    *(("max", f"list({kind}).() -> {kind}", _max) for kind in _ORDERED),
    ("indexOf", "list(A).(A) -> int", _index_of),
    ("lastIndexOf", "list(A).(A) -> int", _last_index_of),
    ("first", "list(A).() -> optional_type(A)", lambda items: CelOptional(True, items[0]) if items else OPTIONAL_NONE),
    ("last", "list(A).() -> optional_type(A)", lambda items: CelOptional(True, items[-1]) if items else OPTIONAL_NONE),
    ("sets.contains", "(list(A), list(A)) -> bool", _set_contains),
    ("sets.intersects", "(list(A), list(A)) -> bool", _intersects),
    ("sets.equivalent", "(list(A), list(A)) -> bool", _equivalent),
]

# Quantities


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError:
        raise CelError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def _is_parsable(reader: Callable[[str], Any]) -> Callable[[str], bool]:
    """Return a function that reports whether a string can be parsed."""

    def can_be_read(text: str) -> bool:
        try:
            reader(text)
        except CelError:
            return False
        return True

    return can_be_read


def _as_integer(quantity: Quantity) -> int:
    number, rest = divmod(quantity.nanos, 10**9)
    if rest or not -(2**63) <= number < 2**63:
        raise CelError("cannot convert value to integer")
    return number


def _whole(number: int) -> Quantity:
    return Quantity(number * 10**9)


_QUANTITY_TYPE = "kubernetes.Quantity"
_QUANTITY_FUNCTIONS: _Functions = [
    ("quantity", f"(string) -> {_QUANTITY_TYPE}", _quantity),
    ("isQuantity", "(string) -> bool", _is_parsable(_quantity)),
    ("sign", f"({_QUANTITY_TYPE}) -> int", lambda quantity: (quantity.nanos > 0) - (quantity.nanos < 0)),
    ("isInteger", f"{_QUANTITY_TYPE}.() -> bool", lambda quantity: quantity.nanos % 10**9 == 0),
    ("asInteger", f"{_QUANTITY_TYPE}.() -> int", _as_integer),
    ("asApproximateFloat", f"{_QUANTITY_TYPE}.() -> double", lambda quantity: quantity.nanos / 10**9),
    ("compareTo", f"{_QUANTITY_TYPE}.({_QUANTITY_TYPE}) -> int", compare),
    ("isGreaterThan", f"{_QUANTITY_TYPE}.({_QUANTITY_TYPE}) -> bool", lambda left, right: left > right),
    ("isLessThan", f"{_QUANTITY_TYPE}.({_QUANTITY_TYPE}) -> bool", lambda left, right: left < right),
    ("add", f"{_QUANTITY_TYPE}.({_QUANTITY_TYPE}) -> {_QUANTITY_TYPE}", lambda left, right: left + right),
    ("add", f"{_QUANTITY_TYPE}.(int) -> {_QUANTITY_TYPE}", lambda left, right: left + _whole(right)),
    ("sub", f"{_QUANTITY_TYPE}.({_QUANTITY_TYPE}) -> {_QUANTITY_TYPE}", lambda left, right: left - right),
    ("sub", f"{_QUANTITY_TYPE}.(int) -> {_QUANTITY_TYPE}", lambda left, right: left - _whole(right)),
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


def _contains_ip(network: _Network, address: _Address) -> bool:
    return network.version == address.version and address in network.network


def _contains_cidr(network: _Network, other: _Network) -> bool:
    return network.version == other.version and other.network.subnet_of(network.network)  # type: ignore[arg-type]


_ADDRESS_FUNCTIONS: _Functions = [
    ("ip", "(string) -> net.IP", _ip),
    ("isIP", "(string) -> bool", _is_parsable(_ip)),
    ("ip.isCanonical", "(string) -> bool", lambda text: str(_ip(text)) == text),
    ("family", "net.IP.() -> int", lambda address: address.version),
    ("isUnspecified", "net.IP.() -> bool", lambda address: address.is_unspecified),
    ("isLoopback", "net.IP.() -> bool", lambda address: address.is_loopback),
    ("isLinkLocalMulticast", "net.IP.() -> bool", lambda address: address.is_multicast and address.is_link_local),
    ("isLinkLocalUnicast", "net.IP.() -> bool", lambda address: address.is_link_local),
    ("isGlobalUnicast", "net.IP.() -> bool", lambda address: not (address.is_multicast or address.is_loopback)),
    ("string", "(net.IP) -> string", str),
    ("cidr", "(string) -> net.CIDR", _cidr),
    ("isCIDR", "(string) -> bool", _is_parsable(_cidr)),
    ("containsIP", "net.CIDR.(net.IP) -> bool", _contains_ip),
    ("containsIP", "net.CIDR.(string) -> bool", lambda network, text: _contains_ip(network, _ip(text))),
    ("containsCIDR", "net.CIDR.(net.CIDR) -> bool", _contains_cidr),
    ("containsCIDR", "net.CIDR.(string) -> bool", lambda network, text: _contains_cidr(network, _cidr(text))),
    ("ip", "net.CIDR.() -> net.IP", lambda network: network.ip),
    ("masked", "net.CIDR.() -> net.CIDR", lambda network: ipaddress.ip_interface(str(network.network))),
    ("prefixLength", "net.CIDR.() -> int", lambda network: network.network.prefixlen),
    ("string", "(net.CIDR) -> string", str),
]

# URLs


def _url(text: str) -> SplitResult:
    if not FORMATS["uri"](text):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return urlsplit(text)


_URL_TYPE = "kubernetes.URL"
_URL_FUNCTIONS: _Functions = [
    ("url", f"(string) -> {_URL_TYPE}", _url),
    ("isURL", "(string) -> bool", _is_parsable(_url)),
    ("getScheme", f"{_URL_TYPE}.() -> string", lambda url: url.scheme),
    ("getHost", f"{_URL_TYPE}.() -> string", lambda url: url.netloc.rpartition("@")[2]),
    ("getHostname", f"{_URL_TYPE}.() -> string", lambda url: url.hostname or ""),
    ("getPort", f"{_URL_TYPE}.() -> string", lambda url: str(url.port) if url.port is not None else ""),
    ("getEscapedPath", f"{_URL_TYPE}.() -> string", lambda url: url.path),
    (
        "getQuery",
        f"{_URL_TYPE}.() -> map(string, list(string))",
        lambda url: parse_qs(url.query, keep_blank_values=True),
    ),
]

# Named formats


def _schema_format_check(name: str) -> Callable[[str], tuple[str, ...]]:
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
    **{name: _schema_format_check(name) for name in ("uri", "uuid", "byte", "date", "datetime")},
}


#: The lengths of the formats' regular expressions (Kubernetes: apiserver/pkg/cel/library/format.go, MaxRegexSize).
_REGEX_SIZES = {
    **{"dns1123Label": 30, "dns1123Subdomain": 60, "dns1035Label": 30, "qualifiedName": 60, "labelValue": 40},
    **{"dns1123LabelPrefix": 30, "dns1123SubdomainPrefix": 60, "dns1035LabelPrefix": 30},
    **{"uri": 1103, "uuid": 70, "byte": 84, "date": 71, "datetime": 71},
}


def _validate(form: NamedFormat, text: str) -> CelOptional:
    problems = form.validate(text)
    return CelOptional(True, list(problems)) if problems else OPTIONAL_NONE


def _named_format(name: str) -> CelOptional:
    return CelOptional(True, NamedFormat(_FORMATS[name], _REGEX_SIZES[name])) if name in _FORMATS else OPTIONAL_NONE


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


_FORMAT_TYPE = "kubernetes.NamedFormat"
_FORMAT_FUNCTIONS: _Functions = [
    *(
        (f"format.{name}", f"() -> {_FORMAT_TYPE}", _constant(NamedFormat(found, _REGEX_SIZES[name])))
        for name, found in _FORMATS.items()
    ),
    ("format.named", f"(string) -> optional_type({_FORMAT_TYPE})", _named_format),
    ("validate", f"{_FORMAT_TYPE}.(string) -> optional_type(list(string))", _validate),
]

FUNCTIONS: _Functions = [
    *_LIST_FUNCTIONS,
    *_QUANTITY_FUNCTIONS,
    *_ADDRESS_FUNCTIONS,
    *_URL_FUNCTIONS,
    *_FORMAT_FUNCTIONS,
]
"""All functions, with their signatures."""
