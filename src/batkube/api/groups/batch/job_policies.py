"""Validation of a Job's pod failure policy and success policy.

Kubernetes: pkg/apis/batch/validation (validatePodFailurePolicy, validateSuccessPolicy, validateIndexesFormat).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

from batkube.api.validation.names import byte_length, qualified_name
from batkube.api.validation.problems import OMITTED, Problems
from batkube.kernel.numbers import parse_int
from batkube.text.go_format import go_quote

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_is_integer = re.compile(r"[+-]?[0-9]+").fullmatch


class BadIndexes(ValueError):
    """The text is not a list of completion indexes; the message says why."""


def check_failure_policy(policy: Mapping[str, Any], spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check a pod failure policy."""
    rules = policy.get("rules") or ()
    if len(rules) > 20:
        problems.too_many(f"{path}.rules", len(rules), 20)
    pod = spec.get("template", {}).get("spec", {})
    names = {c.get("name", "") for field in ("containers", "initContainers") for c in pod.get(field) or ()}
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        _check_action(rule.get("action", ""), spec, f"{at}.action", problems)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            _check_exit_codes(codes, names, f"{at}.onExitCodes", problems)
        if conditions:
            _check_patterns(conditions, f"{at}.onPodConditions", problems)
        if codes is not None and conditions:
            problems.invalid(at, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
        if codes is None and not conditions:
            problems.invalid(at, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _go_quoted_list(names: tuple[str, ...]) -> str:
    """Format strings as Go prints a quoted list."""
    return "valid values: [" + " ".join(go_quote(word) for word in names) + "]"


def _check_action(action: str, spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    if not action:
        problems.required(path, _go_quoted_list(_ACTIONS))
    elif action == "FailIndex":
        if spec.get("backoffLimitPerIndex") is None:
            problems.invalid(path, action, "requires the backoffLimitPerIndex to be set")
    elif action not in _ACTIONS:
        problems.not_supported(path, action, _ACTIONS)


def _check_patterns(patterns: list[Mapping[str, Any]], path: str, problems: Problems) -> None:
    if len(patterns) > 20:
        problems.too_many(path, len(patterns), 20)
    for index, pattern in enumerate(patterns):
        kind, status = pattern.get("type", ""), pattern.get("status", "")
        problems.all_invalid(f"{path}[{index}].type", kind, qualified_name(kind))
        if not status:
            problems.required(f"{path}[{index}].status", _go_quoted_list(_STATUSES))
        elif status not in _STATUSES:
            problems.not_supported(f"{path}[{index}].status", status, _STATUSES)


def _check_exit_codes(codes: Mapping[str, Any], names: set[str], path: str, problems: Problems) -> None:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if not operator:
        problems.required(f"{path}.operator", _go_quoted_list(_OPERATORS))
    elif operator not in _OPERATORS:
        problems.not_supported(f"{path}.operator", operator, _OPERATORS)
    if (name := codes.get("containerName")) is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        problems.invalid(f"{path}.containerName", name, detail)
    if not values:
        problems.invalid(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > 255:
        problems.too_many(f"{path}.values", len(values), 255)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            problems.invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            problems.duplicate(f"{path}.values[{index}]", value)
        seen.add(value)
    if any(current > following for current, following in itertools.pairwise(values)):
        problems.invalid(f"{path}.values", values, "must be ordered")


def check_success_policy(policy: Mapping[str, Any], completions: int, path: str, problems: Problems) -> None:
    """Check a success policy."""
    rules = policy.get("rules") or ()
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        problems.required(f"{path}.rules", detail)
    if len(rules) > 20:
        problems.too_many(f"{path}.rules", len(rules), 20)
    for index, rule in enumerate(rules):
        _check_success_rule(rule, completions, f"{path}.rules[{index}]", problems)


def _check_success_rule(rule: Mapping[str, Any], completions: int, path: str, problems: Problems) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        problems.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        if byte_length(indexes) > 64 * 1024:
            problems.too_long(f"{path}.succeededIndexes", 64 * 1024)
        try:
            total = sum(last - first + 1 for first, last in parse_indexes(indexes, completions))
        except BadIndexes as wrong:
            problems.invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {wrong}")
    if count is not None:
        at = f"{path}.succeededCount"
        problems.not_negative(at, count)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            problems.invalid(at, count, detail)
        if indexes is not None and count > total:
            limit_text = "the number of indexes in the specified succeededIndexes field"
            problems.invalid(at, count, f"must be less than or equal to {total} ({limit_text})")


def parse_indexes(text: str, completions: int) -> list[tuple[int, int]]:
    """Parse a list of index intervals such as `1,3-5`; raises BadIndexes."""
    intervals: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first, last = parse_interval(part, completions)
        if intervals and intervals[-1][1] >= first:
            raise BadIndexes(f"non-increasing order, previous: {intervals[-1][1]}, current: {first}")
        intervals.append((first, last))
    return intervals


def parse_interval(text: str, completions: int) -> tuple[int, int]:
    """Parse an interval to its first and last index; raises BadIndexes."""
    parts = text.split("-")
    if len(parts) > 2:
        rule = "the requirement that an index interval can have at most two parts separated by '-'"
        raise BadIndexes(f"the fragment {go_quote(text)} violates {rule}")
    numbers = []
    for part in parts:
        number = parse_int(part) if _is_integer(part) else None
        if number is None:
            raise BadIndexes(f"cannot convert string to integer for index: {go_quote(part)}")
        if number >= completions:
            raise BadIndexes(f"too large index: {go_quote(part)}")
        numbers.append(number)
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise BadIndexes(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]
