"""The tag of an image name, on which the default pull policy depends.

Kubernetes parses image names with the grammar of container registries (pkg/util/parsers, distribution/reference).
Without tag and digest, the tag is `latest`; an invalid name has no tag.
"""

from __future__ import annotations

import re

from batkube.kernel.memo import memoized

_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\]"
_DOMAIN = re.compile(rf"(?:{_HOST})(?::[0-9]+)?")
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REMAINDER = re.compile(
    rf"{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")


@memoized(4096)  # a cluster has few images, and every pod names one
def tag_of(image: str) -> str:
    """Return the tag of an image: `latest` if it has neither tag nor digest, "" if it has no tag."""
    domain, slash, remainder = image.partition("/")
    if not slash or not ("." in domain or ":" in domain or domain == "localhost" or domain != domain.lower()):
        domain, remainder = "docker.io", image
    match = _REMAINDER.fullmatch(remainder)
    if match is None or _DOMAIN.fullmatch(domain) is None or _IDENTIFIER.fullmatch(image):
        return ""
    if match["tag"]:
        return match["tag"]
    return "" if match["digest"] else "latest"
