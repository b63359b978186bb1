"""Label selectors, compared with a naive model, and kube-apiserver's messages for invalid texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.selectors import (
    NOTHING,
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
    parse_labels,
    selector_of,
)
from conformance import CASES

KEYS = st.sampled_from(["app", "tier", "n", "example.com/role"])
VALUES = st.sampled_from(["", "x", "y", "5", "03", "10", "in", "notin"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(list(Operator)))
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        values: tuple[str, ...] = ()
    elif operator in (Operator.IN, Operator.NOT_IN):
        values = tuple(draw(st.lists(VALUES, min_size=1, max_size=3, unique=True)))
    elif operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
        values = (str(draw(st.integers(0, 20))),)
    else:
        values = (draw(VALUES),)
    return Requirement(draw(KEYS), operator, values)


def naive(requirement: Requirement, labels: dict[str, str]) -> bool:
    """Implement the documented meaning of each operator as simply as possible."""
    present = requirement.key in labels
    value = labels.get(requirement.key, "")
    match requirement.operator:
        case Operator.EXISTS:
            return present
        case Operator.DOES_NOT_EXIST:
            return not present
        case Operator.IN | Operator.EQUALS | Operator.DOUBLE_EQUALS:
            return present and value in requirement.values
        case Operator.NOT_IN | Operator.NOT_EQUALS:
            return not present or value not in requirement.values
        case _:
            if not present or not value.isdigit():
                return False
            bound = int(requirement.values[0])
            return int(value) > bound if requirement.operator is Operator.GREATER_THAN else int(value) < bound


@given(st.lists(requirements(), max_size=4), LABELS)
def test_an_object_is_selected_when_every_requirement_holds(chosen: list[Requirement], labels: dict[str, str]) -> None:
    assert LabelSelector(chosen).matches(labels) == all(naive(one, labels) for one in chosen)


@given(st.lists(requirements(), max_size=4), LABELS)
def test_a_printed_selector_parses_to_the_same_selector(chosen: list[Requirement], labels: dict[str, str]) -> None:
    selector = LabelSelector(chosen)

    again = parse_labels(str(selector))

    assert str(again) == str(selector)
    assert again.matches(labels) == selector.matches(labels)


@given(st.dictionaries(KEYS, VALUES, max_size=3), LABELS)
def test_match_labels_select_objects_that_have_all_of_them(wanted: dict[str, str], labels: dict[str, str]) -> None:
    by_object = selector_of({"matchLabels": wanted})

    assert by_object.matches(labels) == (wanted.items() <= labels.items())
    assert str(by_object) == ",".join(f"{key}={wanted[key]}" for key in sorted(wanted))


@given(st.text(alphabet="ab=!(),<> in\t\0é", max_size=12))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        selector = parse_labels(text)
    except SelectorError:
        return
    assert parse_labels(str(selector)).requirements == selector.requirements


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
        (
            "n>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
        ),
        (
            "a=-b",
            'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string or '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            "/a",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
        ),
    ],
)
def test_an_invalid_selector_is_rejected_with_the_message_of_kube_apiserver(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        parse_labels(text)

    assert str(refusal.value) == message


def test_empty_values_between_commas_count() -> None:
    assert parse_labels("a in ()").requirements == (Requirement("a", Operator.IN, ("",)),)
    assert parse_labels("a in (x,,y)").requirements == (Requirement("a", Operator.IN, ("", "x", "y")),)
    assert parse_labels("a in (,)").requirements == (Requirement("a", Operator.IN, ("",)),)


def test_a_missing_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert selector_of(None) is NOTHING
    assert not NOTHING.matches({})
    assert selector_of({}).matches(None)


def test_an_operator_of_a_selector_object_must_be_known() -> None:
    with pytest.raises(SelectorError, match='"Gt" is not a valid label selector operator'):
        selector_of({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})


def recorded() -> Iterator[tuple[str, int, Any]]:
    for path in sorted(CASES.glob("*/*.json")):
        for step in json.loads(path.read_text())["steps"]:
            query = step.get("request", {}).get("query") or {}
            if "labelSelector" in query and step["request"]["method"] == "GET" and "fieldSelector" not in query:
                yield query["labelSelector"], step["response"]["status"], step["response"]["body"]


def test_recorded_lists_contain_exactly_the_objects_that_match_their_label_selector() -> None:
    answers = list(recorded())

    assert answers
    for text, status, body in answers:
        if status == 400:
            with pytest.raises(SelectorError) as refusal:
                parse_labels(text)
            assert str(refusal.value) == body["message"]
        elif status == 200 and "items" in body:
            selector = parse_labels(text)
            assert all(selector.matches(item["metadata"].get("labels")) for item in body["items"])
