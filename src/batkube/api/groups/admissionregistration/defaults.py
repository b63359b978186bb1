"""Defaults of webhook configurations and policies. Kubernetes: pkg/apis/admissionregistration/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.defaults import Defaults, ensure_struct, fill_absent, list_items

_WEBHOOK: Defaults = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}


def set_validating_webhook_defaults(obj: dict[str, Any]) -> None:
    """Set empty selectors, which match all objects, the failure policy Fail, and so on."""
    for webhook in list_items(obj, "webhooks"):
        fill_absent(webhook, _WEBHOOK)
        _set_selector_defaults(webhook)
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            fill_absent(service, {"port": 443})
        _set_rule_defaults(webhook, "rules")


def set_mutating_webhook_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of a validating webhook, and the reinvocation policy Never."""
    set_validating_webhook_defaults(obj)
    for webhook in list_items(obj, "webhooks"):
        fill_absent(webhook, {"reinvocationPolicy": "Never"})


def set_admission_policy_defaults(obj: dict[str, Any]) -> None:
    """Set the failure policy Fail, and the defaults of the match constraints."""
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, {"failurePolicy": "Fail"})
    _set_match_resources_defaults(spec.get("matchConstraints"))


def set_admission_policy_binding_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of a binding's match resources: equivalent versions, all scopes."""
    _set_match_resources_defaults((obj.get("spec") or {}).get("matchResources"))


def _set_match_resources_defaults(match: dict[str, Any] | None) -> None:
    if match is not None:
        fill_absent(match, {"matchPolicy": "Equivalent"})
        _set_selector_defaults(match)
        _set_rule_defaults(match, "resourceRules", "excludeResourceRules")


def _set_selector_defaults(holder: dict[str, Any]) -> None:
    ensure_struct(holder, "namespaceSelector")
    ensure_struct(holder, "objectSelector")


def _set_rule_defaults(holder: dict[str, Any], *names: str) -> None:
    for name in names:
        for rule in list_items(holder, name):
            fill_absent(rule, {"scope": "*"})
