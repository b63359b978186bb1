"""Validation of the conversion strategy of a definition: None or Webhook.

Kubernetes: validation.go, validateCustomResourceConversion; apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.validation.problems import Problems
from batkube.api.validation.webhooks import check_review_versions, check_webhook_client

_KNOWN_REVIEW_VERSIONS = ("v1", "v1beta1")


def validate_conversion(spec: dict[str, Any]) -> Problems:
    """Validate `spec.conversion`; errors name the paths of the internal form."""
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
        check_review_versions(reviews, f"{path}.conversionReviewVersions", problems, _KNOWN_REVIEW_VERSIONS)
        return problems
    if client is not None:
        problems.forbidden(f"{path}.webhookClientConfig", "should not be set when strategy is not set to Webhook")
    if reviews:
        problems.forbidden(f"{path}.conversionReviewVersions", "should not be set when strategy is not set to Webhook")
    return problems
