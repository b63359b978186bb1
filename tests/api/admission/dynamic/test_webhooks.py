"""Admission webhooks, called over TLS on a real server."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from batkube.api.access.serving_certificates import new_server_credentials
from batkube.api.requests.webhooks.calls import PendingWebhookCalls, WebhookCalls, WebhookRequest, WebhookResponse
from batkube.kernel.stopwatch import wall_clock_instant
from conformance.client import Client
from conformance.serving import Serving
from conformance.webhook import Answer, Hook

GROUP = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
ON_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}
Json = dict[str, Any]


def reviewed(review: Json, allowed: bool, **more: Any) -> Json:  # noqa: ANN401 - of any answer
    response = {"uid": review["request"]["uid"], "allowed": allowed, **more}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def patch(review: Json, *operations: Json) -> Json:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return reviewed(review, True, patch=text, patchType="JSONPatch")


@pytest.fixture
def client(server: Serving) -> Iterator[Client]:
    with contextlib.closing(Client(server.url)) as connected:
        yield connected


def configure(client: Client, kind: str, hook: Hook, name: str = "hooks", **more: Any) -> None:  # noqa: ANN401
    webhook = {
        "name": "judge.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{hook.port}/judge", "caBundle": hook.authority},
        "rules": [ON_MAPS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
    answer = client.ask("POST", f"{GROUP}/{kind.lower()}webhookconfigurations", body)
    assert answer["status"] == 201, answer


def config(name: str = "a", **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_validating_webhook_sees_the_whole_object_and_may_deny_it(client: Client) -> None:
    def judge(review: Json) -> Json:
        good = (review["request"]["object"] or {}).get("data", {}).get("size") != "large"
        return reviewed(review, good, status={"message": "too large", "reason": "Size", "code": 409}, warnings=["hm"])

    with Hook(judge).listening() as hook:
        configure(client, "Validating", hook, timeoutSeconds=7)
        created = client.ask("POST", MAPS, config(size="small"))
        refused = client.ask("PUT", f"{MAPS}/a", config(size="large"))

    assert created["status"] == 201
    assert created["warnings"] == ['299 - "hm"']
    assert (refused["status"], refused["body"]["reason"]) == (409, "Size")
    assert refused["body"]["message"] == 'admission webhook "judge.example.com" denied the request: too large'
    assert hook.paths == ["/judge?timeout=7s"] * 2
    first, second = (review["request"] for review in hook.reviews)
    assert first["object"]["metadata"]["uid"] == created["body"]["metadata"]["uid"], "what it has seen is stored"
    assert (first["operation"], first["oldObject"], first["dryRun"]) == ("CREATE", None, False)
    assert first["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert first["resource"] == first["requestResource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (first["userInfo"]["username"], first["namespace"], first["name"]) == ("admin", "default", "a")
    assert first["options"]["kind"] == "CreateOptions"
    assert (second["operation"], second["oldObject"]["data"]) == ("UPDATE", {"size": "small"})
    assert first["uid"] != second["uid"]


def test_names_and_uids_that_a_webhook_sees_are_the_stored_ones(client: Client) -> None:
    with Hook(lambda review: reviewed(review, True)).listening() as hook:
        configure(client, "Validating", hook)
        body = {**config(), "metadata": {"generateName": "map-"}}
        created = client.ask("POST", MAPS, body)["body"]["metadata"]

    (review,) = hook.reviews
    shown = review["request"]["object"]["metadata"]
    assert (shown["name"], shown["uid"]) == (created["name"], created["uid"])


def test_a_mutating_webhook_changes_what_is_stored_and_defaults_follow(client: Client) -> None:
    container = {"name": "added", "image": "nginx"}
    on_pods = {**ON_MAPS, "resources": ["pods"]}
    add = {"op": "add", "path": "/spec/containers/-", "value": container}
    with Hook(lambda review: patch(review, add)).listening() as hook:
        configure(client, "Mutating", hook, rules=[on_pods])
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        created = client.ask("POST", "/api/v1/namespaces/default/pods", pod)

    assert created["status"] == 201, created
    names = [(each["name"], each["imagePullPolicy"]) for each in created["body"]["spec"]["containers"]]
    assert names == [("c", "Always"), ("added", "Always")]


def test_webhooks_are_called_in_name_order_and_reinvoked_if_needed(client: Client) -> None:
    """A is called again, since B changed the object after it and A requests reinvocation (reinvocationcontext.go)."""
    order: list[str] = []

    def named(name: str) -> Answer:
        def answer(review: Json) -> Json:
            order.append(name)
            done = name in review["request"]["object"].get("data", {})
            return (
                reviewed(review, True) if done else patch(review, {"op": "add", "path": f"/data/{name}", "value": "1"})
            )

        return answer

    with Hook(named("a")).listening() as a, Hook(named("b")).listening() as b:
        configure(client, "Mutating", b, "second", reinvocationPolicy="Never")
        configure(client, "Mutating", a, "first", reinvocationPolicy="IfNeeded")
        created = client.ask("POST", MAPS, config(x="0"))

    assert created["body"]["data"] == {"x": "0", "a": "1", "b": "1"}
    assert order == ["a", "b", "a"]


def test_a_webhook_can_prevent_deletions_and_whole_collections_of_them(client: Client) -> None:
    def judge(review: Json) -> Json:
        request = review["request"]
        return reviewed(review, request["operation"] != "DELETE" or request["name"] != "kept")

    with Hook(judge).listening() as hook:
        configure(client, "Validating", hook)
        for name in ("free", "kept"):
            assert client.ask("POST", MAPS, config(name))["status"] == 201
        all_of_them = client.ask("DELETE", MAPS)
        kept = client.ask("DELETE", f"{MAPS}/kept")
        left = [each["metadata"]["name"] for each in client.ask("GET", MAPS)["body"]["items"]]
        free = client.ask("DELETE", f"{MAPS}/free")

    told = 'admission webhook "judge.example.com" denied the request without explanation'
    assert (all_of_them["status"], kept["status"], free["status"]) == (400, 400, 200)
    assert kept["body"]["message"] == all_of_them["body"]["message"] == told
    assert {"free", "kept"} <= set(left)
    deletion = hook.reviews[-1]["request"]
    assert (deletion["object"], deletion["oldObject"]["metadata"]["name"]) == (None, "free")
    assert deletion["options"]["kind"] == "DeleteOptions"


def test_objects_that_are_deleted_with_their_definition_are_not_reviewed(client: Client) -> None:
    """Kubernetes: apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go, deleteInstances."""
    definitions, things = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/x.io/v1/things"
    schema = {"openAPIV3Schema": {"type": "object"}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    rule = {"apiGroups": ["x.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    with Hook(lambda review: reviewed(review, review["request"]["operation"] != "DELETE")).listening() as hook:
        assert client.ask("POST", definitions, definition)["status"] == 201
        configure(client, "Validating", hook, rules=[rule])
        thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a"}}
        assert client.ask("POST", things, thing)["status"] == 201
        assert client.ask("DELETE", f"{definitions}/things.x.io")["status"] == 200
        assert client.ask("GET", f"{definitions}/things.x.io")["status"] == 404

    assert [review["request"]["operation"] for review in hook.reviews] == ["CREATE"]


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_an_unreachable_webhook_denies_unless_failures_are_ignored(client: Client, policy: str, status: int) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with Hook(lambda review: reviewed(review, True)).listening() as hook:
            url = f"https://127.0.0.1:{port}/judge"
            configure(client, "Validating", hook, clientConfig={"url": url}, failurePolicy=policy)
            answer = client.ask("POST", MAPS, config())

    assert answer["status"] == status
    if status == 500:
        problem = f'Post "{url}?timeout=10s": dial tcp 127.0.0.1:{port}: connect: connection refused'
        text = f'failed calling webhook "judge.example.com": failed to call webhook: {problem}'
        assert answer["body"]["message"] == f"Internal error occurred: {text}"
        assert (answer["body"]["reason"], answer["body"]["details"]) == (
            "InternalError",
            {"causes": [{"message": text}]},
        )


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_a_webhook_with_an_impossible_port_is_unreachable(client: Client, policy: str, status: int) -> None:
    """This once was an internal error even with the policy Ignore."""
    url = "https://127.0.0.1:99999/judge"
    with Hook(lambda review: reviewed(review, True)).listening() as hook:
        configure(client, "Validating", hook, clientConfig={"url": url}, failurePolicy=policy)
        answer = client.ask("POST", MAPS, config())

    assert answer["status"] == status
    if status == 500:
        assert "dial tcp: address 99999: invalid port" in answer["body"]["message"]


@pytest.mark.parametrize("path", ["/metadata/namespace", "/metadata/name"])
def test_a_mutating_webhook_cannot_move_an_object(client: Client, path: str) -> None:
    """An object in `default` once said that it was in `kube-system`."""
    operation = {"op": "replace", "path": path, "value": "kube-system"}
    assert client.ask("POST", MAPS, config("b"))["status"] == 201
    with Hook(lambda review: patch(review, operation)).listening() as hook:
        configure(client, "Mutating", hook)
        created = client.ask("POST", MAPS, config())
        updated = client.ask("PUT", f"{MAPS}/b", config("b", size="1"))
        stored = client.ask("GET", f"{MAPS}")["body"]["items"]

    assert [item["metadata"]["namespace"] for item in stored] == ["default"] * len(stored)
    if path == "/metadata/namespace":
        message = "the namespace of the provided object does not match the namespace sent on the request"
        assert [(each["status"], each["body"]["message"]) for each in (created, updated)] == [(400, message)] * 2
    else:
        assert (created["status"], updated["status"]) == (201, 422)
        assert client.ask("GET", f"{MAPS}/kube-system")["status"] == 200


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda review: {}, "received invalid webhook response: webhook response was absent"),
        (lambda review: {**reviewed(review, True), "apiVersion": None}, "got /, Kind=AdmissionReview"),
        (lambda review: {**reviewed(review, True), "apiVersion": 1}, "cannot unmarshal number into Go struct field"),
        (lambda review: {**reviewed(review, True), "kind": "Pod"}, 'no kind "Pod" is registered for version'),
        (lambda review: reviewed(review, True, uid="other"), "expected response.uid="),
        (lambda review: patch(review, {"op": "remove", "path": "/data"}), "validating webhook may not return"),
        (
            lambda review: reviewed(review, False, status={"code": 10**30}),
            f"cannot unmarshal number {10**30} into Go struct field Status.response.status.code of type int32",
        ),
        (lambda review: reviewed(review, False, status={"code": 404.5}), "cannot unmarshal number 404.5 into Go"),
        (lambda review: reviewed(review, False, status={"message": {}}), "cannot unmarshal object into Go"),
    ],
)
def test_an_invalid_response_counts_as_a_failure(client: Client, answer: Answer, problem: str) -> None:
    with Hook(answer).listening() as hook:
        configure(client, "Validating", hook)
        refused = client.ask("POST", MAPS, config())

    assert refused["status"] == 500
    assert problem in refused["body"]["message"]


def test_an_untrusted_certificate_and_an_http_error_are_failures(client: Client) -> None:
    with Hook(lambda review: {"oops": True}).listening() as hook, Hook(lambda review: {}).listening() as other:
        configure(
            client,
            "Validating",
            hook,
            clientConfig={"url": f"https://127.0.0.1:{hook.port}/", "caBundle": other.authority},
        )
        unknown = client.ask("POST", MAPS, config())["body"]["message"]
        client.ask("DELETE", f"{GROUP}/validatingwebhookconfigurations/hooks")
        hook.status = 500
        configure(client, "Validating", hook)
        failed = client.ask("POST", MAPS, config())["body"]["message"]

    assert unknown.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
    told = r"""an error on the server ("{\"oops\": true}") has prevented the request from succeeding"""
    assert failed.endswith(told)


def test_other_requests_are_served_while_a_webhook_runs_into_its_timeout(client: Client, server: Serving) -> None:
    def wait(review: Json) -> Json:
        time.sleep(3)
        return reviewed(review, True)

    with Hook(wait).listening() as hook:
        configure(client, "Validating", hook, timeoutSeconds=1)
        with contextlib.closing(Client(server.url)) as other:
            answers: list[Json] = []
            asking = threading.Thread(target=lambda: answers.append(client.ask("POST", MAPS, config())))
            asking.start()
            served = 0
            while asking.is_alive():
                assert other.ask("GET", MAPS)["status"] == 200
                served += 1
            asking.join()

    assert served > 5, "a server that waited would have served one"
    assert answers[0]["status"] == 500
    assert answers[0]["body"]["message"].endswith("context deadline exceeded")


def test_match_conditions_selectors_and_dry_runs_limit_the_calls(client: Client) -> None:
    with Hook(lambda review: reviewed(review, False)).listening() as hook:
        configure(
            client,
            "Validating",
            hook,
            objectSelector={"matchLabels": {"judged": "yes"}},
            matchConditions=[{"name": "large", "expression": "object.data.size == 'large'"}],
            sideEffects="NoneOnDryRun",
        )
        judged = {**config(size="large"), "metadata": {"name": "a", "labels": {"judged": "yes"}}}
        unlabelled = client.ask("POST", MAPS, config("b", size="large"))["status"]
        small = client.ask(
            "POST", MAPS, {**judged, "data": {"size": "small"}, "metadata": {**judged["metadata"], "name": "c"}}
        )["status"]
        large = client.ask("POST", MAPS, judged, dryRun="All")
        unclear = client.ask("POST", MAPS, {**judged, "data": {"other": "1"}})

    assert (unlabelled, small, large["status"], unclear["status"]) == (201, 201, 400, 403)
    assert len(hook.reviews) == 1
    assert hook.reviews[0]["request"]["dryRun"] is True
    assert unclear["body"]["message"].startswith('configmaps "a" is forbidden: ')


def test_a_service_reaches_a_webhook_only_outside_the_simulation(client: Client) -> None:
    """An ExternalName service reaches this machine; other services fail with kube-apiserver's messages."""
    services = "/api/v1/namespaces/default/services"
    with Hook(lambda review: reviewed(review, False)).listening() as hook:
        at = {
            "service": {"namespace": "default", "name": "hook", "port": hook.port, "path": "/x"},
            "caBundle": hook.authority,
        }
        configure(client, "Validating", hook, clientConfig=at)
        missing = client.ask("POST", MAPS, config())["body"]["message"]
        spec = {"type": "ExternalName", "externalName": "localhost"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": spec}
        assert client.ask("POST", services, service)["status"] == 201
        unnamed = client.ask("POST", MAPS, config())["body"]["message"]
        client.ask("DELETE", f"{services}/hook")
        inside = {"ports": [{"port": hook.port}], "selector": {"app": "hook"}}
        client.ask("POST", services, {**service, "spec": inside})
        empty = client.ask("POST", MAPS, config())["body"]["message"]

    url = f'Post "https://hook.default.svc:{hook.port}/x?timeout=10s"'
    assert missing.endswith(f'{url}: service "hook" not found')
    assert "x509" in unnamed, "the certificate is for another name than hook.default.svc"
    assert empty.endswith(f'{url}: no endpoints available for service "hook"')


def test_a_slow_response_is_aborted_at_the_timeout(client: Client) -> None:
    """The timeout of a socket applies to each operation, and the webhook sends a byte now and then, forever."""
    credentials = new_server_credentials("127.0.0.1", wall_clock_instant())
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            with contextlib.suppress(OSError), credentials.tls_context.wrap_socket(listener.accept()[0], True) as one:
                one.recv(65536)
                one.sendall(b"HTTP/1.1 200 OK\r\n")
                while not ended.is_set():
                    one.sendall(b"a")
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        authority = base64.b64encode(credentials.ca_certificate).decode()
        at = {"url": f"https://127.0.0.1:{listener.getsockname()[1]}/", "caBundle": authority}
        with Hook(lambda review: {}).listening() as hook:
            configure(client, "Validating", hook, clientConfig=at, timeoutSeconds=1)
            answer = client.ask("POST", MAPS, config())
        ended.set()

    assert answer["body"]["message"].endswith("context deadline exceeded")


def test_writes_of_controllers_call_webhooks_too(server: Serving, client: Client) -> None:
    """An in-process component blocks until the webhook responds."""
    with Hook(
        lambda review: patch(review, {"op": "add", "path": "/data", "value": {"by": "hook"}})
    ).listening() as hook:
        configure(client, "Mutating", hook)
        value = {**config("made"), "metadata": {"name": "made", "namespace": "default"}}
        now = wall_clock_instant()
        server.inside(lambda: server.api.client("some-controller").create("configmaps", value, now))
        stored = client.ask("GET", f"{MAPS}/made")["body"]

    assert stored["data"] == {"by": "hook"}
    assert hook.reviews[0]["request"]["userInfo"]["username"] == "system:some-controller"


def test_writes_of_components_during_a_request_are_separate_from_it() -> None:
    """Time advances while a request is handled, so controllers write; each of their objects gets its own name."""
    calls = WebhookCalls(lambda request: WebhookResponse(0, b""), lambda: 1)
    names = iter(("first", "second", "third"))
    calls.begin_request({})

    mine = calls.once("name", lambda: next(names))
    with calls.component_request():
        others = [calls.once("name", lambda: next(names)) for _ in range(2)]

    assert (mine, others, calls.once("name", lambda: "another")) == ("first", ["second", "third"], "first")


def test_a_request_that_has_written_is_not_aborted() -> None:
    versions = [7]
    request = WebhookRequest("https://x/", "x", 443, "x", "", b"", 1)
    calls = WebhookCalls(lambda request: WebhookResponse(200, b"{}"), lambda: versions[0])
    calls.begin_request({})
    with pytest.raises(PendingWebhookCalls):
        calls.responses([("a", request)])
    versions[0] = 8

    assert calls.responses([("a", request)]) == [WebhookResponse(200, b"{}")]
