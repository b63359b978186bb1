"""ServiceAccount: sets the service account of pods and mounts its token.

Kubernetes: plugin/pkg/admission/serviceaccount/admission.go.
"""

from __future__ import annotations

import random
from typing import Any

from batkube.api.admission.request import AdmissionRequest
from batkube.api.validation.field_errors import go_quote
from batkube.cluster.store import Key

_TOKEN_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_VOLUME_PREFIX = "kube-api-access-"
_VOLUME_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_TOKEN_SOURCES: tuple[dict[str, Any], ...] = (
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
)


class ServiceAccountPlugin:
    """Sets the service account of new pods and adds the volume with its token.

    Unlike in kube-apiserver, the account `default` need not exist: a controller may not have created it.
    """

    def __init__(self, rng: random.Random) -> None:
        #: Generates the suffixes of volume names.
        self._rng = rng

    def admit(self, request: AdmissionRequest) -> None:
        """Set the account of a new pod and mount its token."""
        if request.old is not None:
            return
        spec = request.value["spec"]
        name = spec.get("serviceAccountName") or "default"
        account = request.store.get("serviceaccounts", Key(f"{request.namespace}/{name}"))
        if account is None and name != "default":
            problem = f"serviceaccount {go_quote(name)} not found"
            raise request.forbidden(f"error looking up service account {request.namespace}/{name}: {problem}")
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = account or {}
        automount = spec.get("automountServiceAccountToken")
        if automount is None:
            automount = account.get("automountServiceAccountToken")
        if automount is not False:
            self._mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": each.get("name", "")} for each in account["imagePullSecrets"]]

    def _mount_token(self, spec: dict[str, Any]) -> None:
        volumes = spec.get("volumes") or []
        existing = [each["name"] for each in volumes if each.get("name", "").startswith(_TOKEN_VOLUME_PREFIX)]
        containers = [
            container
            for kind in ("initContainers", "containers")
            for container in spec.get(kind) or ()
            if not any(mount.get("mountPath") == _TOKEN_MOUNT_PATH for mount in container.get("volumeMounts") or ())
        ]
        if not containers:
            return
        name = (
            existing[0] if existing else _TOKEN_VOLUME_PREFIX + "".join(self._rng.choices(_VOLUME_SUFFIX_LETTERS, k=5))
        )
        for container in containers:
            mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_MOUNT_PATH}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        if not existing:
            projected = {"sources": list(_TOKEN_SOURCES), "defaultMode": 0o644}
            spec["volumes"] = [*volumes, {"name": name, "projected": projected}]
