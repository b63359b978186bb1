"""A served cluster asks webhooks about what its own controllers write, and goes on meanwhile."""

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


def _labelled(review: dict[str, Any]) -> dict[str, Any]:
    operations = [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    response = {"uid": review["request"]["uid"], "allowed": True, "patch": patch, "patchType": "JSONPatch"}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def test_others_are_answered_while_a_controllers_write_waits_for_a_webhook(tmp_path: Path) -> None:
    """The webhook answers only when the test has been answered: a server that waits would never have its answer."""
    may_answer = threading.Event()

    def answer(review: dict[str, Any]) -> dict[str, Any]:
        assert may_answer.wait(60)
        return _labelled(review)

    hook = Hook(answer)
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
            _await(lambda: len(hook.asked) == 1)

            assert client.ask("GET", "/api/v1/nodes")["status"] == 200
            may_answer.set()

            _await(lambda: len(client.ask("GET", _PODS)["body"]["items"]) == 2)
            pods = [pod["metadata"] for pod in client.ask("GET", _PODS)["body"]["items"]]
            events = client.ask("GET", "/api/v1/namespaces/default/events")["body"]["items"]

    assert [pod["labels"]["seen"] for pod in pods] == ["yes", "yes"]
    assert len(hook.asked) == 2, "once for each pod"
    assert "FailedCreate" not in {event["reason"] for event in events}


def _await(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
