"""IP addresses and CIDRs, with the lenient rules of fields from before Kubernetes became strict.

Leading zeros are allowed, and an IPv4 address may be written as an IPv4-mapped IPv6 address (StrictIPCIDRValidation is
off by default in v1.34).

Kubernetes: apimachinery/pkg/util/validation/ip.go, k8s.io/utils/net.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from batkube.api.validation.names import ErrorMessages
from batkube.api.validation.problems import Problems
from batkube.kernel.memo import memoized
from batkube.kernel.numbers import parse_int

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
AddressRange = ipaddress.IPv4Network | ipaddress.IPv6Network

_NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
#: The length of the prefix of an IPv4-mapped IPv6 address.
_MAPPED_BITS = 96


@memoized(4096)
def parse_ip(text: str) -> Address | None:
    """Parse an address, or return None (Kubernetes: ParseIPSloppy)."""
    if ":" in text:
        if "%" in text:
            return None
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            return None
        return address.ipv4_mapped or address
    parts = text.split(".")
    numbers = [parse_int(part) if part.isascii() and part.isdigit() else None for part in parts]
    if len(parts) != 4 or not all(number is not None and number < 256 for number in numbers):
        return None
    return ipaddress.IPv4Address(".".join(map(str, numbers)))


@memoized(1024)
def parse_cidr(text: str) -> AddressRange | None:
    """Parse a CIDR, or return None (Kubernetes: ParseCIDRSloppy)."""
    head, slash, length = text.partition("/")
    address = parse_ip(head)
    if not slash or address is None or not (length.isascii() and length.isdigit()):
        return None
    bits = parse_int(length)
    if bits is None:
        return None
    if ":" in head and address.version == 4:
        # An IPv4-mapped CIDR, whose first 96 bits are the same for all.
        if bits < _MAPPED_BITS:
            return ipaddress.IPv6Network((0, bits), strict=False)
        bits -= _MAPPED_BITS
    if bits > address.max_prefixlen:
        return None
    return ipaddress.ip_network((str(address), bits), strict=False)


def is_ipv6(text: str) -> bool:
    """Return whether a text is an IPv6 address, but not an IPv4-mapped one."""
    return isinstance(parse_ip(text), ipaddress.IPv6Address)


def check_ip(text: str, path: str, problems: Problems, before: Sequence[str] = ()) -> bool:
    """Check an address, unless it is one of those in `before`; return whether it passed."""
    if text in before or parse_ip(text) is not None:
        return True
    problems.invalid(path, text, _NOT_AN_ADDRESS)
    return False


def check_cidr(text: str, path: str, problems: Problems, before: Sequence[str] = ()) -> None:
    """Check a CIDR, unless it is one of those in `before`."""
    if text not in before and parse_cidr(text) is None:
        problems.invalid(path, text, _NOT_A_RANGE)


def check_strict_ip(text: str, path: str, problems: Problems) -> None:
    """Check an address of a field with strict validation: only the canonical text passes."""
    address = parse_ip(text)
    if address is None:
        problems.invalid(path, text, _NOT_AN_ADDRESS)
        return
    problems.all_invalid(path, text, _non_canonical_ip(text))
    if not _non_canonical_ip(text) and text != str(address):
        problems.invalid(path, text, f'must be in canonical form ("{address}")')


def _non_canonical_ip(text: str) -> ErrorMessages:
    if ":" in text:
        return ("must not be an IPv4-mapped IPv6 address",) if not is_ipv6(text) else ()
    return ("must not have leading 0s",) if text != str(parse_ip(text)) else ()


def check_strict_cidr(text: str, path: str, problems: Problems) -> None:
    """Check a CIDR of a field with strict validation."""
    network = parse_cidr(text)
    if network is None:
        problems.invalid(path, text, _NOT_A_RANGE)
        return
    head, _, length = text.partition("/")
    if ":" in head and not is_ipv6(head):
        problems.invalid(path, text, "must not have an IPv4-mapped IPv6 address")
    elif (":" not in head and head != str(parse_ip(head))) or length != str(int(length)):
        problems.invalid(path, text, "must not have leading 0s in IP or prefix length")
    elif parse_ip(head) != network.network_address:
        problems.invalid(path, text, "must not have bits set beyond the prefix length")
    elif text != str(network):
        problems.invalid(path, text, f'must be in canonical form ("{network}")')


def is_dual_stack(texts: Sequence[str]) -> bool:
    """Return whether the addresses or CIDRs include both families."""
    families = {is_ipv6(text.partition("/")[0]) for text in texts}
    return len(families) == 2


def check_one_per_family(texts: Sequence[str], value: object, path: str, noun: str, problems: Problems) -> None:
    """Check that there is at most one address (or CIDR) of each family."""
    if len(texts) < 2:
        return
    wrong = _parse_message(texts, noun)
    if wrong:
        problems.internal(path, wrong)
    if wrong or len(texts) > 2 or not is_dual_stack(texts):
        problems.invalid(path, value, f"may specify no more than one {noun} for each IP family")


def _parse_message(texts: Sequence[str], noun: str) -> str:
    """Return kube-apiserver's error for the first address (or CIDR) whose family it cannot determine."""
    for index, text in enumerate(texts):
        if noun == "IP" and parse_ip(text) is None:
            return f"failed to check for dual stack with error:invalid IP[{index}]: {text}"
        if noun == "CIDR" and parse_cidr(text) is None:
            failed = f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
            return f"invalid PodCIDRs. failed to check with dual stack with error:{failed}"
    return ""


def check_endpoint_ip(text: str, path: str, problems: Problems) -> None:
    """Check the address of an endpoint (Kubernetes: ValidateEndpointIP)."""
    address = parse_ip(text)
    if address is None:
        problems.invalid(path, text, "must be a valid IP address")
        return
    if address.is_unspecified:
        problems.invalid(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        problems.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        problems.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_link_local_multicast(address):
        problems.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _is_link_local_multicast(address: Address) -> bool:
    packed = address.packed
    if len(packed) == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02
