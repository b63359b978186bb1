"""The versions of a custom kind: which is stored, which are served, and what a deprecated one is told.

Objects are stored in one version and read in any. Between versions nothing but apiVersion changes (conversion strategy
None); what the schema of a version does not know is left out of it, and what the stored version lacks is filled in
from the defaults of its own schema, not of the one read in (Kubernetes: apiextensions-apiserver/pkg/apiserver/
customresource_handler.go).
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.kinds import version_rank

CustomVersion = dict[str, Any]
"""An entry of `spec.versions`."""


def storage_version(spec: dict[str, Any]) -> str:
    """Return the version in which objects are stored."""
    return next(str(version["name"]) for version in spec["versions"] if version.get("storage"))


def deprecation_warning(spec: dict[str, Any], version: CustomVersion) -> str:
    """Return what clients of a deprecated version are told; "" for others."""
    if not version.get("deprecated"):
        return ""
    own = version.get("deprecationWarning")
    if own is not None:
        return str(own)
    kind, group = spec["names"]["kind"], spec["group"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    better = [
        each["name"]
        for each in spec["versions"]
        if each.get("served")
        and not each.get("deprecated")
        and version_rank(each["name"]) < version_rank(version["name"])
    ]
    if not better:
        return text
    return f"{text}; use {group}/{min(better, key=version_rank)} {kind}"
