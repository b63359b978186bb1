"""Warnings about addresses that are valid but not canonical.

Kubernetes: apimachinery/pkg/util/validation/ip.go, GetWarningsForIP and GetWarningsForCIDR.
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.api.validation.addresses import parse_cidr, parse_ip
from batkube.api.validation.field_errors import go_quote

_FUTURE = "will be considered invalid in a future Kubernetes release: use"


def ip_warnings(path: str, text: str) -> list[str]:
    """Return the warnings about an address."""
    address = parse_ip(text)
    if address is None or text == str(address):
        return []
    if address.version == 4:
        return [f"{path}: non-standard IP address {go_quote(text)} {_FUTURE} {go_quote(str(address))}"]
    return [f"{path}: IPv6 address {go_quote(text)} should be in RFC 5952 canonical format ({go_quote(str(address))})"]


def ip_list_warnings(path: str, texts: Iterable[str]) -> list[str]:
    """Return the warnings about the addresses in the list at `path`."""
    return [warning for index, text in enumerate(texts) for warning in ip_warnings(f"{path}[{index}]", text)]


def cidr_warnings(path: str, text: str) -> list[str]:
    """Return the warnings about a CIDR."""
    network = parse_cidr(text)
    if network is None or text == str(network):
        return []
    head, _, length = text.partition("/")
    address, warnings = parse_ip(head), []
    if address != network.network_address:
        single = f"{address}/{128 if ':' in head else 32}"
        choice = f"(should be {go_quote(str(network))} or {go_quote(single)}?)"
        warnings.append(f"{path}: CIDR value {go_quote(text)} is ambiguous in this context {choice}")
    if (address and address.version == 4 and head != str(address)) or length != str(int(length)):
        warnings.append(f"{path}: non-standard CIDR value {go_quote(text)} {_FUTURE} {go_quote(str(network))}")
    if not warnings:
        canonical = go_quote(f"{address}/{length}")
        warnings.append(
            f"{path}: IPv6 CIDR value {go_quote(text)} should be in RFC 5952 canonical format ({canonical})"
        )
    return warnings


def cidr_list_warnings(path: str, texts: Iterable[str]) -> list[str]:
    """Return the warnings about the CIDRs in the list at `path`."""
    return [warning for index, text in enumerate(texts) for warning in cidr_warnings(f"{path}[{index}]", text)]
