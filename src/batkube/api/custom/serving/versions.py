"""The versions of a custom kind: storage version, served versions, and deprecation warnings.

Objects are stored in one version and read in any. With the conversion strategy None, only apiVersion changes: fields
that the requested version's schema does not declare are pruned, and fields missing in storage get the defaults of the
storage version's schema, not of the requested one.

Kubernetes: apiextensions-apiserver/pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.kinds import version_rank

CustomVersion = dict[str, Any]
"""An entry of `spec.versions`."""


def storage_version(spec: dict[str, Any]) -> str:
    """Return the name of the storage version."""
    return next(str(version["name"]) for version in spec["versions"] if version.get("storage"))


def deprecation_warning(spec: dict[str, Any], version: CustomVersion) -> str:
    """Return the warning for clients of a deprecated version; "" for other versions."""
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
