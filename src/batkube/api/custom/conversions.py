"""Conversion between the versions of a custom kind: by name only, or by a webhook that is stored but never called.

Kubernetes: validation.go, validateCustomResourceConversion; apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.validation.names import dns_1035_label
from batkube.api.validation.problems import Problems, repeats
from batkube.api.validation.webhooks import check_webhook_client

_KNOWN_REVIEWS = ("v1", "v1beta1")


def conversion_problems(spec: dict[str, Any]) -> Problems:
    """Return what is wrong with `spec.conversion`, in the places of the internal form."""
    problems = Problems()
    conversion = spec.get("conversion")
    if conversion is None:
        return problems
    strategy, webhook = conversion.get("strategy", ""), conversion.get("webhook") or {}
    path = "spec.conversion"
    if strategy != "None" and spec.get("preserveUnknownFields"):
        problems.invalid(f"{path}.strategy", strategy, "must be None if spec.preserveUnknownFields is true")
    if not strategy:
        problems.required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        problems.not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        if client is None:
            problems.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
        else:
            check_webhook_client(client, f"{path}.webhookClientConfig", problems)
        _check_reviews(reviews, f"{path}.conversionReviewVersions", problems)
        return problems
    if client is not None:
        problems.forbidden(f"{path}.webhookClientConfig", "should not be set when strategy is not set to Webhook")
    if reviews:
        problems.forbidden(f"{path}.conversionReviewVersions", "should not be set when strategy is not set to Webhook")
    return problems


def _check_reviews(reviews: list[str], path: str, problems: Problems) -> None:
    if not reviews:
        problems.required(path)
        return
    for index, (version, is_repeated) in enumerate(zip(reviews, repeats(reviews), strict=True)):
        if is_repeated:
            problems.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            problems.all_invalid(f"{path}[{index}]", version, dns_1035_label(version))
    if not any(version in _KNOWN_REVIEWS for version in reviews):
        problems.invalid(path, reviews, "must include at least one of v1, v1beta1")
