"""A served cluster calls webhooks for writes of its own controllers, without blocking other clients."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clients.serving import served
from conformance.client import Client
from conformance.webhook import Hook

_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
_PODS = "/api/v1/namespaces/default/pods"


def _response_with_label(review: dict[str, Any]) -> dict[str, Any]:
    operations = [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    response = {"uid": review["request"]["uid"], "allowed": True, "patch": patch, "patchType": "JSONPatch"}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def test_other_requests_are_served_while_a_controller_waits_for_a_webhook(tmp_path: Path) -> None:
    """The webhook responds only after a request of the test was served: a blocked server would never respond."""
    may_respond = threading.Event()

    def respond(review: dict[str, Any]) -> dict[str, Any]:
        assert may_respond.wait(60)
        return _response_with_label(review)

    hook = Hook(respond)
    webhook = {
        "name": "slow.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{hook.port}/", "caBundle": hook.authority},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "slow"},
        "webhooks": [webhook],
    }
    with hook.listening(), served(tmp_path / "served", "--platform", "1x4") as cluster:
        client = Client(cluster.url, cluster.token)
        with contextlib.closing(client):
            configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
            assert client.ask("POST", configurations, configuration)["status"] == 201
            deployments = "/apis/apps/v1/namespaces/default/deployments"
            assert client.ask("POST", deployments, _DEPLOYMENT)["status"] == 201
            _wait_for(lambda: len(hook.reviews) == 1)

            assert client.ask("GET", "/api/v1/nodes")["status"] == 200
            may_respond.set()

            _wait_for(lambda: len(client.ask("GET", _PODS)["body"]["items"]) == 2)
            pods = [pod["metadata"] for pod in client.ask("GET", _PODS)["body"]["items"]]
            events = client.ask("GET", "/api/v1/namespaces/default/events")["body"]["items"]

    assert [pod["labels"]["seen"] for pod in pods] == ["yes", "yes"]
    assert len(hook.reviews) == 2, "once for each pod"
    assert "FailedCreate" not in {event["reason"] for event in events}


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
