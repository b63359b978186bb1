"""The webhooks of the soak: one adds a label, the other validates and sometimes does not answer in time."""

from __future__ import annotations

import base64
import contextlib
import json
import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from api import ROOT  # also adds the folder of the tests to the path
from conformance.webhook import Hook
from soak_clients import change_priority

assert ROOT
#: One in so many reviews of the validating webhook gets no response before its timeout.
_SILENT_EVERY = 50
_SILENT_S, _TIMEOUT_S = 3.0, 1
_REGISTRATION = "admissionregistration.k8s.io/v1"
_LABEL = [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]


class _BoundedHook(Hook):
    """A webhook that keeps no reviews."""

    def respond(self, path: str, review: dict[str, Any]) -> tuple[int, bytes]:
        """Return the status and the body of the response to a review."""
        self.reviews.clear()
        self.paths.clear()
        return super().respond(path, review)


def _respond(review: dict[str, Any], **fields: str) -> dict[str, Any]:
    response = {"uid": review["request"]["uid"], "allowed": True, **fields}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def _mutate(review: dict[str, Any]) -> dict[str, Any]:
    return _respond(review, patch=base64.b64encode(json.dumps(_LABEL).encode()).decode(), patchType="JSONPatch")


class _Validator:
    def __init__(self) -> None:
        self._count = 0

    def __call__(self, review: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        if self._count % _SILENT_EVERY == 0:
            time.sleep(_SILENT_S)
        return _respond(review)


class Registration(NamedTuple):
    """The path and the object with which a webhook is registered."""

    path: str
    body: dict[str, Any]


def _registration(kind: str, hook: Hook, labels: dict[str, str], policy: str, timeout_s: int) -> Registration:
    webhook = {
        "name": f"{kind}.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{hook.port}/", "caBundle": hook.authority},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "objectSelector": {"matchLabels": labels},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": policy,
        "timeoutSeconds": timeout_s,
    }
    body = {
        "apiVersion": _REGISTRATION,
        "kind": f"{kind.capitalize()}WebhookConfiguration",
        "metadata": {"name": "soak"},
        "webhooks": [webhook],
    }
    return Registration(f"/apis/{_REGISTRATION}/{kind}webhookconfigurations", body)


def _run(registrations: Connection) -> None:
    change_priority(1)
    mutating, validating = _BoundedHook(_mutate), _BoundedHook(_Validator())
    with mutating.listening(), validating.listening():
        registrations.send(
            [
                _registration("mutating", mutating, {"app": "web"}, "Fail", 10),
                _registration("validating", validating, {"checked": "yes"}, "Ignore", _TIMEOUT_S),
            ]
        )
        while True:
            time.sleep(3600)


@contextlib.contextmanager
def webhooks() -> Iterator[list[Registration]]:
    """Run the webhooks in another process; yield their registrations."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_run, args=(sender,), daemon=True)
    process.start()
    try:
        yield receiver.recv()
    finally:
        process.kill()
        process.join()
