"""Parse and validate ListOptions, CreateOptions, UpdateOptions, PatchOptions and DeleteOptions.

Kubernetes: apimachinery/pkg/apis/meta/v1/validation and apimachinery/pkg/apis/meta/internalversion/validation.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from batkube.api.requests.field_selectors import (
    EVERYTHING,
    NAME,
    FieldSelector,
    parse_field_requirements,
    parse_selector_for,
)
from batkube.api.requests.messages import Request
from batkube.api.requests.statuses import Failure, bad_request
from batkube.api.validation import field_errors as errors
from batkube.api.validation.field_errors import FieldError, go_quote
from batkube.api.validation.names import path_segment
from batkube.cluster.kinds import Resource
from batkube.cluster.selectors import LabelSelector, SelectorError, parse_labels
from batkube.kernel.numbers import parse_int

_INT64 = 1 << 63


def invalid_options(kind: str, problems: list[FieldError]) -> Failure:
    """Return the 422 for invalid options, which have a group and kind but no name."""
    messages = [f"{problem.field}: {problem.message}" for problem in problems]
    text = messages[0] if len(messages) == 1 else "[" + ", ".join(messages) + "]"
    causes = [{"reason": problem.reason, "message": problem.message, "field": problem.field} for problem in problems]
    details = {"group": "meta.k8s.io", "kind": kind, "causes": causes}
    return Failure(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {text}', details)


def parse_resource_version(text: str) -> int:
    """Parse a resourceVersion; the ValueError has kube-apiserver's message."""
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdigit()):
        raise _invalid_version(text, "invalid syntax")
    number = int(text) if len(text) < 20 else parse_int(text)
    if number is None or number >= 1 << 64:
        raise _invalid_version(text, "value out of range")
    return number


def _invalid_version(text: str, problem: str) -> ValueError:
    quoted = go_quote(text)
    return ValueError(f"resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {problem}")


def _integer_parameter(request: Request, name: str) -> int | None:
    text = request.query_value(name)
    if text == "":
        if name in request.query:
            raise bad_request('strconv.ParseInt: parsing "": invalid syntax')
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        raise bad_request(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
    number = parse_int(text)
    if number is None or not -_INT64 <= number < _INT64:
        raise bad_request(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
    return number


class ListOptions(msgspec.Struct):
    """The options of a list, a watch or a deletion of a collection."""

    labels: LabelSelector
    fields: FieldSelector
    watch: bool
    resource_version: str
    resource_version_match: str
    limit: int
    continue_token: str
    timeout_s: int | None
    bookmarks: bool
    #: None if not specified.
    send_initial_events: bool | None


def list_options(request: Request, resource: Resource, watch: bool) -> ListOptions:
    """Parse and validate the options of a list or watch (metav1.ListOptions).

    Errors take precedence in kube-apiserver's order: numbers, syntax of the selectors, conflicting options, and last
    fields that are not selectable.
    """
    timeout = _integer_parameter(request, "timeoutSeconds")
    limit = _integer_parameter(request, "limit")
    field_text = request.query_value("fieldSelector")
    with _reject_invalid_selectors():
        labels = parse_labels(request.query_value("labelSelector"))
        parse_field_requirements(field_text)
    options = ListOptions(
        labels,
        EVERYTHING,
        watch,
        request.query_value("resourceVersion"),
        request.query_value("resourceVersionMatch"),
        max(limit or 0, 0),
        request.query_value("continue"),
        timeout,
        request.query_flag("allowWatchBookmarks"),
        request.query_flag("sendInitialEvents") if "sendInitialEvents" in request.query else None,
    )
    problems = _validate_watch(options) if watch else _validate_list(options)
    if problems:
        raise invalid_options("ListOptions", problems)
    if field_text:
        with _reject_invalid_selectors():
            options.fields = parse_selector_for(field_text, resource)
    return options


def selected_name(request: Request) -> str:
    """Return the name to which the field selector restricts a list or watch; "" if it is malformed or does not.

    Such a request is authorized by a rule with `resourceNames` (Kubernetes: requestinfo.go in
    apiserver/pkg/endpoints/request, NewRequestInfo).
    """
    if "fieldSelector" not in request.query:
        return ""
    try:
        _integer_parameter(request, "timeoutSeconds")
        _integer_parameter(request, "limit")
        parse_labels(request.query_value("labelSelector"))
        terms = parse_field_requirements(request.query_value("fieldSelector"))
    except (Failure, SelectorError):
        return ""
    name = next((term.value for term in terms if term.field == NAME and not term.negated), "")
    return "" if path_segment(name, False) else name


@contextlib.contextmanager
def _reject_invalid_selectors() -> Iterator[None]:
    try:
        yield
    except SelectorError as problem:
        raise bad_request(str(problem)) from problem


_VERSION_MATCH = "resourceVersionMatch"


def _validate_list(options: ListOptions) -> list[FieldError]:
    """Return the problems with the options of a list."""
    # Kubernetes: apimachinery/pkg/apis/meta/internalversion/validation/validation.go, ValidateListOptions.
    match, problems = options.resource_version_match, []
    if match:
        if not options.resource_version:
            problems.append(
                errors.forbidden(_VERSION_MATCH, f"{_VERSION_MATCH} is forbidden unless resourceVersion is provided")
            )
        if options.continue_token:
            problems.append(
                errors.forbidden(_VERSION_MATCH, f"{_VERSION_MATCH} is forbidden when continue is provided")
            )
        if match not in ("Exact", "NotOlderThan"):
            allowed = '"Exact", "NotOlderThan", ""'
            text = f"Unsupported value: {go_quote(match)}: supported values: {allowed}"
            problems.append(FieldError("FieldValueNotSupported", _VERSION_MATCH, text))
        if match == "Exact" and options.resource_version == "0":
            problems.append(
                errors.forbidden(_VERSION_MATCH, f'{_VERSION_MATCH} "exact" is forbidden for resourceVersion "0"')
            )
    if options.send_initial_events is not None:
        problems.append(errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return problems


def _validate_watch(options: ListOptions) -> list[FieldError]:
    """Return the problems with the options of a watch."""
    # Kubernetes: apimachinery/pkg/apis/meta/internalversion/validation/validation.go, validateWatchOptions.
    match, problems = options.resource_version_match, []
    if options.send_initial_events is not None:
        if match != "NotOlderThan":
            problems.append(
                errors.forbidden(_VERSION_MATCH, f"sendInitialEvents requires setting {_VERSION_MATCH} to NotOlderThan")
            )
    elif match:
        problems.append(
            errors.forbidden(
                _VERSION_MATCH, f"{_VERSION_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            )
        )
    if match and match != "NotOlderThan":
        problems.append(errors.not_supported(_VERSION_MATCH, match, ["NotOlderThan"]))
    # A watch without a version, or from "0", starts with the existing objects, which implies NotOlderThan
    # (Kubernetes: apimachinery/pkg/apis/meta/internalversion/defaults.go, SetListOptionsDefaults).
    has_match = match or (options.send_initial_events is None and options.resource_version in ("", "0"))
    if has_match and options.continue_token:
        problems.append(errors.forbidden(_VERSION_MATCH, f"{_VERSION_MATCH} is forbidden when continue is provided"))
    return problems


_GO_DURATION = re.compile(r"[-+]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+")


def validate_timeout(request: Request) -> None:
    """Raise a 400 for a malformed `timeout`. A valid one has no effect, since requests are answered at once."""
    # Kubernetes: apiserver/pkg/endpoints/filters/request_deadline.go, parseTimeout.
    text = request.query_value("timeout")
    if text and not _GO_DURATION.fullmatch(text):
        is_number = re.fullmatch(r"[-+]?\d+(\.\d*)?", text)
        problem = (
            f"time: missing unit in duration {go_quote(text)}"
            if is_number
            else f"time: invalid duration {go_quote(text)}"
        )
        raise bad_request(f"invalid timeout specified in the request URL - {problem}")


class WriteOptions(msgspec.Struct):
    """The options of a create, update or patch."""

    dry_run: bool
    field_manager: str
    field_validation: str
    force: bool | None
    #: `fieldManager` and `fieldValidation` as the client set them explicitly.
    explicit_fields: dict[str, str] = {}

    def as_object(self, kind: str) -> dict[str, Any]:
        """Return the options as an API object of `kind`: CreateOptions, UpdateOptions or PatchOptions."""
        document: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            document["dryRun"] = ["All"]
        if self.force is not None:
            document["force"] = self.force
        return {**document, **self.explicit_fields}


_MAX_MANAGER_BYTES = 128


def write_options(request: Request, kind: str) -> WriteOptions:
    """Parse and validate the CreateOptions, UpdateOptions or PatchOptions (`kind`) of a request."""
    agent = request.headers.get("user-agent", "").partition("/")[0][:_MAX_MANAGER_BYTES]
    is_apply = kind == "PatchOptions" and request.headers.get("content-type", "").startswith("application/apply-patch")
    if not request.query and not is_apply:
        return WriteOptions(False, agent, "Warn", None)
    problems: list[FieldError] = []
    force = request.query_flag("force") if "force" in request.query else None
    manager = request.query_value("fieldManager")
    if kind == "PatchOptions":
        if is_apply:
            if not manager:
                problems.append(errors.required("fieldManager", "is required for apply patch"))
        elif force is not None:
            problems.append(errors.forbidden("force", "may not be specified for non-apply patch"))
    problems.extend(_validate_manager(manager))
    problems.extend(_validate_dry_run(request.query.get("dryRun", [])))
    validation = request.query_value("fieldValidation")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        text = f'Unsupported value: {go_quote(validation)}: supported values: "", "Ignore", "Strict", "Warn"'
        problems.append(FieldError("FieldValueNotSupported", "fieldValidation", text))
    if problems:
        raise invalid_options(kind, problems)
    explicit = {"fieldManager": manager, "fieldValidation": validation}
    return WriteOptions(
        bool(request.query.get("dryRun")),
        manager or agent,
        validation or "Warn",
        force,
        {name: text for name, text in explicit.items() if text},
    )


def _validate_manager(manager: str) -> list[FieldError]:
    problems = []
    if len(manager.encode()) > _MAX_MANAGER_BYTES:
        problems.append(errors.too_long("fieldManager", _MAX_MANAGER_BYTES))
    for number, char in enumerate(manager):
        if not char.isprintable():
            problems.append(
                errors.invalid("fieldManager", manager, f"invalid character {_go_rune(char)} (at position {number})")
            )
            break
    return problems


def _go_rune(char: str) -> str:
    """Format a character as Go's %#U does."""
    return f"U+{ord(char):04X}" + (f" '{char}'" if char.isprintable() else "")


def _validate_dry_run(values: list[str]) -> list[FieldError]:
    if any(value != "All" for value in values):
        return [errors.not_supported_in_order("dryRun", values, ["All"])]
    return []


class DeleteOptions(msgspec.Struct):
    """The options of a deletion."""

    grace_period_s: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str | None = None
    orphan: bool | None = None
    dry_run: bool = False

    def as_object(self) -> dict[str, Any]:
        """Return the options as an API object."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        parts = {
            "gracePeriodSeconds": self.grace_period_s,
            "preconditions": {name: text for name, text in preconditions.items() if text is not None} or None,
            "orphanDependents": self.orphan,
            "propagationPolicy": self.propagation,
            "dryRun": ["All"] if self.dry_run else None,
        }
        set_parts = {name: part for name, part in parts.items() if part is not None}
        return {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **set_parts}


def delete_options(request: Request, body: dict[str, Any] | None) -> DeleteOptions:
    """Parse and validate DeleteOptions from the body, or from the query if there is no body."""
    if body is not None:
        options = _decode_options(body)
        dry_run = list(body.get("dryRun") or [])
    else:
        options = DeleteOptions(
            _integer_parameter(request, "gracePeriodSeconds"),
            request.query_value("uid") or None,
            request.query_value("resourceVersion") or None,
            request.query_value("propagationPolicy") if "propagationPolicy" in request.query else None,
            request.query_flag("orphanDependents") if "orphanDependents" in request.query else None,
        )
        dry_run = request.query.get("dryRun", [])
    return _validate_delete_options(options, dry_run)


def _validate_delete_options(options: DeleteOptions, dry_run: list[str]) -> DeleteOptions:
    problems = []
    if options.propagation and options.orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(errors.invalid("propagationPolicy", options.propagation, detail))
    if options.propagation is not None and options.propagation not in ("Foreground", "Background", "Orphan"):
        allowed = '"Foreground", "Background", "Orphan", "nil"'
        text = f"Unsupported value: {go_quote(options.propagation)}: supported values: {allowed}"
        problems.append(FieldError("FieldValueNotSupported", "propagationPolicy", text))
    problems.extend(_validate_dry_run(dry_run))
    if problems:
        raise invalid_options("DeleteOptions", problems)
    options.dry_run = bool(dry_run)
    return options


def eviction_options(eviction: dict[str, Any]) -> DeleteOptions:
    """Parse and validate the DeleteOptions in an Eviction."""
    body = eviction.get("deleteOptions") or {}
    return _validate_delete_options(_decode_options(body), list(body.get("dryRun") or []))


def _decode_options(body: dict[str, Any]) -> DeleteOptions:
    """Return the options in a body, unvalidated."""
    conditions = body.get("preconditions") or {}
    return DeleteOptions(
        body.get("gracePeriodSeconds"),
        conditions.get("uid"),
        conditions.get("resourceVersion"),
        body.get("propagationPolicy"),
        body.get("orphanDependents"),
        bool(body.get("dryRun")),
    )
