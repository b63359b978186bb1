"""Conversion between the versions of a custom kind: by name only, or by a webhook that is stored but never called.

Kubernetes: validation.go, validateCustomResourceConversion; apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from batkube.api.checks.names import dns_1035_label, dns_subdomain
from batkube.api.checks.problems import Problems, repeats

_KNOWN_REVIEWS = ("v1", "v1beta1")
_URL_FORM = "; desired format: https://host[/path]"


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
        _check_client(client, f"{path}.webhookClientConfig", problems)
        _check_reviews(reviews, f"{path}.conversionReviewVersions", problems)
        return problems
    if client is not None:
        problems.forbidden(f"{path}.webhookClientConfig", "should not be set when strategy is not set to Webhook")
    if reviews:
        problems.forbidden(f"{path}.conversionReviewVersions", "should not be set when strategy is not set to Webhook")
    return problems


def _check_client(client: dict[str, Any] | None, path: str, problems: Problems) -> None:
    if client is None:
        problems.required(path, "required when strategy is set to Webhook")
        return
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        problems.required(path, "exactly one of url or service is required")
    elif url is not None:
        check_webhook_url(url, f"{path}.url", problems)
    elif service is not None:
        check_webhook_service(service, f"{path}.service", problems)


def check_webhook_url(url: str, path: str, problems: Problems) -> None:
    """Check where a webhook listens."""
    try:
        parts = urlsplit(url)
    except ValueError as problem:
        problems.required(path, f"url must be a valid URL: {problem}{_URL_FORM}")
        return
    if parts.scheme != "https":
        problems.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    user, at, host = parts.netloc.rpartition("@")
    if not host:
        problems.invalid(path, "", f"host must be specified{_URL_FORM}")
    if at:
        problems.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        problems.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        problems.invalid(path, parts.query, "query parameters are not permitted in the URL")


def check_webhook_service(service: dict[str, Any], path: str, problems: Problems) -> None:
    """Check which service a webhook is behind; the real server asks for the two names in each other's place."""
    if not service.get("namespace"):
        problems.required(f"{path}.name")
    if not service.get("name"):
        problems.required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        problems.invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    url_path = service.get("path") or "/"
    if url_path == "/":
        return
    if url_path == "//":
        problems.invalid(f"{path}.path", url_path, "segment[0] may not be empty")
        return
    if not url_path.startswith("/"):
        problems.invalid(f"{path}.path", url_path, "must start with a '/'")
    for index, step in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not step:
            problems.invalid(f"{path}.path", url_path, f"segment[{index}] may not be empty")
        else:
            wrong = [f"segment[{index}]: {problem}" for problem in dns_subdomain(step)]
            problems.all_invalid(f"{path}.path", url_path, wrong)


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
