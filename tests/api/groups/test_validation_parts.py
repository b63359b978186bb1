"""The small languages inside objects, and values as Go prints them."""

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
def test_indexes_are_read_back(indexes: set[int]) -> None:
    ordered = sorted(indexes)
    text = ",".join(str(index) for index in ordered)

    assert parse_indexes(text, 51) == [(index, index) for index in ordered]


@pytest.mark.parametrize("text", ["3,2", "1-1", "9", "a", "1-2-3"])
def test_indexes_out_of_order_or_range_are_refused(text: str) -> None:
    with pytest.raises(BadIndexes):
        parse_indexes(text, 9)


def test_addresses_are_read_as_leniently_as_old_fields_are() -> None:
    assert str(parse_ip("010.002.003.004")) == "10.2.3.4"
    assert str(parse_ip("::ffff:1.2.3.4")) == "1.2.3.4"
    assert parse_ip("1.2.3") is parse_ip("fe80::1%eth0") is parse_cidr("10.0.0.0/33") is None
    assert is_dual_stack(["1.2.3.4", "::1"])


@given(st.ip_addresses())
def test_a_canonical_address_passes_where_only_canonical_ones_do(address: object) -> None:
    problems = Problems()
    check_strict_ip(str(address), "x", problems)
    mapped = str(address).startswith("::ffff:")

    assert mapped or problems == []


def test_whole_units_are_counted_of_what_is_counted() -> None:
    assert resource_quantity("example.com/gpu", "1500m") == ("must be an integer",)
    assert resource_quantity("cpu", "1500m") == ()
    assert container_resource("pods") == ("must be a standard resource for containers",)


def test_a_struct_is_shown_with_every_field_in_the_order_of_go() -> None:
    assert go_struct("core.ServicePort", {"port": 80, "protocol": "TCP"}) == (
        '{"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}'
    )
    assert go_struct("meta.LabelSelector", {"matchLabels": {"b": "<", "a": ""}}) == (
        '{"matchLabels":{"a":"","b":"\\u003c"}}'
    )


def test_a_difference_is_shown_with_three_lines_around_it() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}

    assert go_difference("core.Taint", taint, taint | {"value": "v"}) == (
        '@@ -1,6 +1,6 @@\n {\n  "Key": "a",\n- "Value": "",\n+ "Value": "v",\n  "Effect": "NoSchedule",\n'
        '  "TimeAdded": null\n }\n'
    )
