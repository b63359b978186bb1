"""Kubeconfigs: the file that tells a client where the API server is, whom to trust, and who the client is."""

from __future__ import annotations

from collections.abc import Mapping

import yaml


def kubeconfig(cluster: Mapping[str, str], user: str, credentials: Mapping[str, str], name: str = "batkube") -> str:
    """Return the file with one context, of this `name`: the server and its authority, the user and what shows that."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": dict(cluster)}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return yaml.safe_dump(content, sort_keys=False)
