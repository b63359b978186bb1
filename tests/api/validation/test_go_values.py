"""Values as Go prints them."""

from __future__ import annotations

from batkube.api.validation.go_values import go_difference, go_struct


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
