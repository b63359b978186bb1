"""Secrets with long-lived service account tokens: filled in here, and deleted with the account.

Kubernetes no longer creates such Secrets by itself. A user who needs a token that does not expire creates a Secret of
this type (Kubernetes: pkg/controller/serviceaccount/tokens_controller.go).
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from batkube.cluster.client import Client, ignore_not_found
from batkube.cluster.object_meta import annotations_of, name_of, namespace_of, with_metadata
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.framework.controller import Controller
from batkube.controllers.garbage_collection.namespaces import SERVICE_ACCOUNT
from batkube.kernel.instants import Instant

_SECRET, _TYPE = "secrets", "kubernetes.io/service-account-token"
_ACCOUNT_NAME, _ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"

LongLivedTokenIssuer = Callable[[KubeObject, KubeObject, Instant], str]
"""Issues a token of a service account (first object) that is valid while a Secret (second object) exists."""


class TokenController(Controller):
    """Fills in token Secrets, and deletes those whose account does not exist."""

    storage = _SECRET

    def __init__(self, world: World, client: Client, issue_token: LongLivedTokenIssuer, authority: str) -> None:
        super().__init__(world, client)
        self._issue_token = issue_token
        self._authority = authority
        #: The account name of each deleted Secret, until the Secret is reconciled.
        self._account_of_deleted: dict[Key, str] = {}
        world.store.subscribe(SERVICE_ACCOUNT, self._on_accounts_changed)

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue token Secrets, including deleted ones, which their account may still reference."""
        for key, obj in zip(batch.keys, batch.objects, strict=True):
            if self.should_reconcile(obj):
                if batch.type is DELETED:
                    self._account_of_deleted[key] = annotations_of(obj)[_ACCOUNT_NAME]
                self.queue.add(key, now)

    def should_reconcile(self, obj: KubeObject) -> bool:
        """Return whether the Secret is a service account token."""
        return bool(obj.get("type") == _TYPE)

    def _on_accounts_changed(self, batch: Batch, now: Instant) -> None:
        """Queue the Secrets of deleted accounts."""
        if batch.type is DELETED:
            for account in batch.keys:
                for key, secret in self.store.in_namespace(_SECRET, namespace_of(account)):
                    if self.should_reconcile(secret) and annotations_of(secret)[_ACCOUNT_NAME] == name_of(account):
                        self.queue.add(key, now)

    def reconcile(self, key: Key, obj: KubeObject, now: Instant) -> None:
        """Add token, namespace and certificate to a Secret, or delete it if its account does not exist."""
        annotations = annotations_of(obj)
        account = self.store.get(SERVICE_ACCOUNT, Key(f"{namespace_of(key)}/{annotations[_ACCOUNT_NAME]}"))
        if account is None or annotations.get(_ACCOUNT_UID, "") not in ("", account["metadata"]["uid"]):
            with ignore_not_found():
                self.client.delete(_SECRET, key, now, uid=obj["metadata"]["uid"])
            return
        data = {**(obj.get("data") or {})}
        if self._authority:
            data["ca.crt"] = _encode(self._authority)
        data["namespace"] = data.get("namespace") or _encode(namespace_of(key))
        data["token"] = data.get("token") or _encode(self._issue_token(account, obj, now))
        if data != obj.get("data"):
            annotated = with_metadata(obj, annotations={**annotations, _ACCOUNT_UID: account["metadata"]["uid"]})
            self.client.update(_SECRET, {**annotated, "data": data}, now)

    def reconcile_deleted(self, key: Key, now: Instant) -> None:
        """Remove the deleted Secret from its ServiceAccount."""
        name = self._account_of_deleted.pop(key, "")
        account = self.store.get(SERVICE_ACCOUNT, Key(f"{namespace_of(key)}/{name}"))
        if account is not None:
            references = account.get("secrets") or []
            remaining = [reference for reference in references if reference.get("name") != name_of(key)]
            if remaining != references:
                self.client.update(SERVICE_ACCOUNT, {**account, "secrets": remaining}, now)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
