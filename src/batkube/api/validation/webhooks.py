"""Validation of a webhook's client configuration (Kubernetes: apiserver/pkg/util/webhook/validation.go)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from batkube.api.validation.names import dns_1035_label, dns_subdomain
from batkube.api.validation.problems import Problems, mark_repeats

_URL_FORM = "; desired format: https://host[/path]"


def check_webhook_client(client: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check a client configuration: a URL or a service."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        problems.required(path, "exactly one of url or service is required")
    elif url is not None:
        _check_url(url, f"{path}.url", problems)
    elif service is not None:
        _check_service(service, f"{path}.service", problems)


def _check_url(url: str, path: str, problems: Problems) -> None:
    """Check the URL of a webhook."""
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


def _check_service(service: dict[str, Any], path: str, problems: Problems) -> None:
    """Check the service of a webhook; kube-apiserver swaps the field names of the two required errors."""
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


def check_review_versions(
    versions: Sequence[str], path: str, problems: Problems, known: Sequence[str], nothing: str = ""
) -> None:
    """Check a webhook's review versions, one of which must be supported; `nothing` is the error for an empty list."""
    if not versions:
        problems.required(path, nothing)
        return
    for index, (version, is_repeated) in enumerate(zip(versions, mark_repeats(versions), strict=True)):
        if is_repeated:
            problems.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            problems.all_invalid(f"{path}[{index}]", version, dns_1035_label(version))
    if not any(version in known for version in versions):
        problems.invalid(path, list(versions), f"must include at least one of {', '.join(known)}")
