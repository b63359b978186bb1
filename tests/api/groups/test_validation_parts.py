"""Small languages in fields (schedules, indexes, addresses), and values as Go prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.groups.batch.cron_schedules import check_zone
from batkube.api.groups.batch.job_policies import BadIndexes, parse_indexes
from batkube.api.validation.addresses import check_strict_ip, is_dual_stack, parse_cidr, parse_ip
from batkube.api.validation.go_values import go_difference, go_struct
from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import container_resource, resource_quantity


@pytest.mark.parametrize(("zone", "good"), [("Europe/Paris", True), ("UTC", True), ("Mars/X", False), ("../x", False)])
def test_a_time_zone_must_exist(zone: str, good: bool) -> None:
    problems = Problems()
    check_zone(zone, "spec.timeZone", problems)

    assert (not problems) == good


@given(st.sets(st.integers(0, 50)))
def test_formatted_indexes_parse_back(indexes: set[int]) -> None:
    ordered = sorted(indexes)
    text = ",".join(str(index) for index in ordered)

    assert parse_indexes(text, 51) == [(index, index) for index in ordered]


@pytest.mark.parametrize("text", ["3,2", "1-1", "9", "a", "1-2-3"])
def test_indexes_out_of_order_or_range_are_rejected(text: str) -> None:
    with pytest.raises(BadIndexes):
        parse_indexes(text, 9)


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


def test_extended_resources_must_be_integers() -> None:
    assert resource_quantity("example.com/gpu", "1500m") == ("must be an integer",)
    assert resource_quantity("cpu", "1500m") == ()
    assert container_resource("pods") == ("must be a standard resource for containers",)


def test_a_go_struct_is_printed_with_all_fields_in_order() -> None:
    assert go_struct("core.ServicePort", {"port": 80, "protocol": "TCP"}) == (
        '{"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}'
    )
    assert go_struct("meta.LabelSelector", {"matchLabels": {"b": "<", "a": ""}}) == (
        '{"matchLabels":{"a":"","b":"\\u003c"}}'
    )


def test_a_diff_has_three_lines_of_context() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}

    assert go_difference("core.Taint", taint, taint | {"value": "v"}) == (
        '@@ -1,6 +1,6 @@\n {\n  "Key": "a",\n- "Value": "",\n+ "Value": "v",\n  "Effect": "NoSchedule",\n'
        '  "TimeAdded": null\n }\n'
    )
