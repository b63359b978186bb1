"""Warnings about addresses that are valid but not canonical."""

from __future__ import annotations

import ipaddress

from hypothesis import assume, given
from hypothesis import strategies as st

from batkube.api.groups.kind_model import address_warnings


@given(st.ip_addresses())
def test_a_canonical_address_causes_no_warning(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assume(address.version == 4 or address.ipv4_mapped is None)

    assert address_warnings.ip_warnings("ip", str(address)) == []


@given(st.lists(st.integers(0, 255), min_size=4, max_size=4), st.integers(0, 32))
def test_a_warning_about_leading_zeros_has_the_canonical_address(parts: list[int], length: int) -> None:
    padded, plain = ".".join(f"0{part}" for part in parts), ".".join(map(str, parts))
    future = "will be considered invalid in a future Kubernetes release: use"

    assert address_warnings.ip_warnings("ip", padded) == [f'ip: non-standard IP address "{padded}" {future} "{plain}"']
    assert (
        f'non-standard CIDR value "{padded}/{length}"' in address_warnings.cidr_warnings("ip", f"{padded}/{length}")[-1]
    )
