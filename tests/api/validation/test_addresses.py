"""IP addresses in lenient and strict fields."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.api.validation.addresses import check_strict_ip, is_dual_stack, parse_cidr, parse_ip
from batkube.api.validation.problems import Problems


def test_lenient_fields_accept_non_canonical_addresses() -> None:
    assert str(parse_ip("010.002.003.004")) == "10.2.3.4"
    assert str(parse_ip("::ffff:1.2.3.4")) == "1.2.3.4"
    assert parse_ip("1.2.3") is parse_ip("fe80::1%eth0") is parse_cidr("10.0.0.0/33") is None
    assert is_dual_stack(["1.2.3.4", "::1"])


@given(st.ip_addresses())
def test_strict_fields_accept_canonical_addresses_only(address: object) -> None:
    problems = Problems()
    check_strict_ip(str(address), "x", problems)
    mapped = str(address).startswith("::ffff:")

    assert mapped or problems == []
