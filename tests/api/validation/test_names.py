"""Rules of names: common properties, and kube-apiserver's error messages."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.validation import names

LABEL_TEXT = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=70)
ANY_TEXT = st.text(max_size=80)


@given(LABEL_TEXT)
def test_a_label_is_a_subdomain(text: str) -> None:
    if not names.dns_label(text):
        assert names.dns_subdomain(text) == ()


@given(LABEL_TEXT)
def test_a_label_that_starts_with_a_letter_may_name_a_service(text: str) -> None:
    assert (names.dns_1035_label(text) == ()) == (names.dns_label(text) == () and text[0].isalpha())


@given(st.lists(LABEL_TEXT, min_size=1, max_size=3))
def test_labels_joined_by_dots_are_a_subdomain_but_not_a_label(labels: list[str]) -> None:
    if any(names.dns_label(label) for label in labels):
        return
    text = ".".join(labels)

    assert names.dns_subdomain(text) == ()
    assert len(labels) == 1 or "must not contain dots" in names.dns_label(text)


@given(ANY_TEXT)
def test_a_non_empty_label_value_is_a_qualified_name(text: str) -> None:
    if "/" not in text:
        assert (names.qualified_name(text) == ()) == (bool(text) and names.label_value(text) == ())


@given(ANY_TEXT)
def test_every_rule_accepts_or_rejects_any_text(text: str) -> None:
    for rule in (names.config_key, names.environment_variable, names.port_name, names.wildcard_subdomain):
        assert all(isinstance(problem, str) for problem in rule(text))


@given(LABEL_TEXT)
def test_a_prefix_may_end_in_a_dash(text: str) -> None:
    if not names.dns_label(text):
        assert names.label_name(text + "a-", True) == names.dns_label(text + "a")


@pytest.mark.parametrize(
    ("rule", "text", "problem"),
    [
        (names.dns_label, "a" * 64, "must be no more than 63 characters"),
        (names.dns_label, "a.b", "must not contain dots"),
        (names.qualified_name, "/a", "prefix part must be non-empty"),
        (names.qualified_name, "a/", "name part must be non-empty"),
        (names.config_key, "..x", "must not start with '..'"),
        (names.port_name, "123", "must contain at least one letter (a-z)"),
        (names.port_name, "a--b", "must not contain consecutive hyphens"),
        (names.environment_variable, "", "environment variable name must be non-empty"),
    ],
)
def test_errors_of_names_equal_those_of_kube_apiserver(rule: object, text: str, problem: str) -> None:
    assert callable(rule)
    assert problem in rule(text)


def test_length_is_counted_in_bytes() -> None:
    assert names.label_value("ä" * 40)[0] == "must be no more than 63 characters"


@pytest.mark.parametrize(
    ("name", "prefix", "problems"),
    [
        (".", False, ("may not be '.'",)),
        (".", True, ()),
        ("a/b%", False, ("may not contain '/'", "may not contain '%'")),
    ],
)
def test_a_name_must_be_a_valid_path_segment(name: str, prefix: bool, problems: tuple[str, ...]) -> None:
    assert names.path_segment(name, prefix) == problems
