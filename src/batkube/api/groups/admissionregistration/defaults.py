"""Defaults of webhooks and policies. Kubernetes: pkg/apis/admissionregistration/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.filling import Defaults, fill_absent, struct, structs

_WEBHOOK: Defaults = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}


def fill_validating_webhooks(obj: dict[str, Any]) -> None:
    """Let a webhook match every object where it does not say which, and refuse a write when it cannot be asked."""
    for webhook in structs(obj, "webhooks"):
        fill_absent(webhook, _WEBHOOK)
        _selectors(webhook)
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            fill_absent(service, {"port": 443})
        _rules(webhook, "rules")


def fill_mutating_webhooks(obj: dict[str, Any]) -> None:
    """Fill what a validating webhook has; a mutating one is not called again after others changed the object."""
    fill_validating_webhooks(obj)
    for webhook in structs(obj, "webhooks"):
        fill_absent(webhook, {"reinvocationPolicy": "Never"})


def fill_admission_policy(obj: dict[str, Any]) -> None:
    """A policy that cannot be evaluated refuses the request, unless it says that such failures are to be ignored."""
    spec = struct(obj, "spec")
    fill_absent(spec, {"failurePolicy": "Fail"})
    _match_resources(spec.get("matchConstraints"))


def fill_admission_policy_binding(obj: dict[str, Any]) -> None:
    """A binding matches equivalent versions of a resource, in all scopes, unless it says otherwise."""
    _match_resources((obj.get("spec") or {}).get("matchResources"))


def _match_resources(match: dict[str, Any] | None) -> None:
    if match is not None:
        fill_absent(match, {"matchPolicy": "Equivalent"})
        _selectors(match)
        _rules(match, "resourceRules", "excludeResourceRules")


def _selectors(holder: dict[str, Any]) -> None:
    struct(holder, "namespaceSelector")
    struct(holder, "objectSelector")


def _rules(holder: dict[str, Any], *names: str) -> None:
    for name in names:
        for rule in structs(holder, name):
            fill_absent(rule, {"scope": "*"})
