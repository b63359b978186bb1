"""Kubeconfigs: the address of the API server, its certificate authority, and the client's credentials."""

from __future__ import annotations

from collections.abc import Mapping

import yaml


def kubeconfig(cluster: Mapping[str, str], user: str, credentials: Mapping[str, str], name: str = "batkube") -> str:
    """Return a kubeconfig with one context called `name`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": dict(cluster)}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return yaml.safe_dump(content, sort_keys=False)
