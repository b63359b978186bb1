"""Random permissions and random requests: a real kube-apiserver and Batkube allow and deny the same ones.

Opt-in, since the real server must be built first. `BATKUBE_ACCESS_SEED` and `BATKUBE_ACCESS_ROUNDS` choose other
requests and more of them; a round is one user with random permissions and some thirty requests.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from conformance.client import Client
from conformance.placeholders import Json
from conformance.real_server import real_server
from conformance.serving import serving
from opt_in import slow

pytestmark = slow("builds and runs a real kube-apiserver")
SEED = int(os.environ.get("BATKUBE_ACCESS_SEED", "1"))
ROUNDS = int(os.environ.get("BATKUBE_ACCESS_ROUNDS", "20"))

RBAC = "rbac.authorization.k8s.io"
ROLES, BINDINGS = f"/apis/{RBAC}/v1/clusterroles", f"/apis/{RBAC}/v1/clusterrolebindings"
GROUPS = ["", "apps", "*"]
RESOURCES = ["pods", "pods/log", "*/log", "*", "deployments", "deployments/scale", "*/scale", "configmaps", "secrets"]
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "escalate", "bind"]
NAMES = [None, None, ["a"], ["a", "b"], ["b", ""], ["*"]]
URLS = ["/a", "/a/*", "*", "/a/b", "/a*", "/metrics", "/openapi/*", "/"]
AGGREGATION = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}}
PATHS = [
    "/api/v1/pods",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/pods/a",
    "/api/v1/namespaces/default/pods/a/log",
    "/apis/apps/v1/namespaces/default/deployments/a/scale",
    "/apis/apps/v1/deployments",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/secrets/b",
    "/api/v1/watch/namespaces/default/pods",
    "/api/v1/namespaces//configmaps",
    "//api/v1/pods",
    "/api/v1/nodes",
    "/apis/apps/v1",
    "/metrics",
    "/openapi/v3",
    "/a/b",
    "/version/",
    "/",
]
SELECTORS = ["metadata.name=a", "metadata.name!=a", "metadata.name=a,metadata.name=b", "metadata.namespace=default"]


class Servers(NamedTuple):
    """A real kube-apiserver and Batkube's server."""

    real: Client
    ours: Client


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Both servers, without other clients."""
    with real_server(tmp_path_factory.mktemp("real")) as real, serving() as ours:
        both = Servers(Client(real.url), Client(ours.url))
        yield both
        for client in both:
            client.close()


def some(chance: random.Random, values: list[str], most: int) -> list[str]:
    return chance.sample(values, chance.randint(1, most))


def rule(chance: random.Random) -> dict[str, list[str]]:
    """Return a random rule."""
    if chance.random() < 0.25:
        return {"nonResourceURLs": some(chance, URLS, 3), "verbs": some(chance, ["get", "post", "*", "put"], 2)}
    names = chance.choice(NAMES)
    made = {
        "apiGroups": some(chance, GROUPS, 2),
        "resources": some(chance, RESOURCES, 3),
        "verbs": some(chance, VERBS, 4),
    }
    return made if names is None else {**made, "resourceNames": names}


def role(name: str, rules: list[Json]) -> dict[str, Json]:
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def user_with(servers: Servers, number: int, held: list[Json]) -> dict[str, str]:
    """Create a user with these permissions on both servers, and return the headers to impersonate it."""
    name, marker = f"user-{SEED}-{number}", f"/marker-{number}"
    writing = {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["create", "update"]}
    rules = [*held, writing, {"nonResourceURLs": [marker], "verbs": ["get"]}]
    binding = {
        **role(name, []),
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": name}],
    }
    del binding["rules"]
    for path, body in ((ROLES, role(name, rules)), (BINDINGS, binding)):
        for server in servers:
            assert server.request({"method": "POST", "path": path, "body": body})["status"] == 201
    headers = {"Impersonate-User": name}
    _await_rights(servers.real, review(headers, {"nonResourceAttributes": {"path": marker, "verb": "get"}}))
    return headers


def _await_rights(server: Client, question: dict[str, Json]) -> None:
    """Wait for the caches of the real server."""
    for _ in range(500):
        if server.request(question)["body"]["status"]["allowed"]:
            return
        time.sleep(0.02)
    raise AssertionError("the real server does not heed new roles")


def review(headers: dict[str, str], spec: Json) -> dict[str, Json]:
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return {"method": "POST", "path": path, "headers": headers, "body": {**kind, "spec": spec}}


def grants(chance: random.Random, headers: dict[str, str], held: list[Json]) -> Iterator[dict[str, Json]]:
    """Yield requests to write roles, some of which the user's permissions cover."""
    for number in range(12):
        rules = [rule(chance) for _ in range(chance.randint(0, 2))]
        rules += [chance.choice(held)] if chance.random() < 0.4 else []
        body = {**role(f"granted-{number}", rules), **(AGGREGATION if chance.random() < 0.15 else {})}
        posted = {"method": "POST", "path": ROLES, "headers": headers, "query": {"dryRun": "All"}, "body": body}
        is_put = chance.random() < 0.3
        yield {**posted, "method": "PUT", "path": f"{ROLES}/granted-{number}"} if is_put else posted


def questions(chance: random.Random, headers: dict[str, str]) -> Iterator[dict[str, Json]]:
    """Yield access reviews of random permissions."""
    for _ in range(4):
        path = {"path": chance.choice([*URLS, "", "/a/", "/a/c"]), "verb": chance.choice(["get", "post", ""])}
        yield review(headers, {"nonResourceAttributes": path})
        resource = {
            "verb": chance.choice(VERBS),
            "group": chance.choice(["", "apps"]),
            "resource": chance.choice(["pods", "deployments", "secrets", "*"]),
            "subresource": chance.choice(["", "log", "scale"]),
            "name": chance.choice(["", "a", "b", "c", "*"]),
            "namespace": chance.choice(["", "default"]),
        }
        yield review(headers, {"resourceAttributes": resource})


def requests(chance: random.Random, headers: dict[str, str]) -> Iterator[dict[str, Json]]:
    """Yield random requests that change nothing."""
    for _ in range(10):
        method = chance.choice(["GET", "GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
        query: dict[str, str] = {} if method in ("GET", "HEAD", "OPTIONS") else {"dryRun": "All"}
        if method == "GET" and chance.random() < 0.4:
            query["fieldSelector"] = chance.choice(SELECTORS)
        if method == "GET" and chance.random() < 0.2:
            query |= {"watch": chance.choice(["1", "true", "false", ""]), "timeoutSeconds": "1"}
        yield {"method": method, "path": chance.choice(PATHS), "headers": headers, "query": query}


def compared_part(answer: dict[str, Json]) -> Json:
    """Return the compared part of an answer: the message of a denial, or only that the request is allowed."""
    body = answer["body"] if isinstance(answer["body"], dict) else {}
    if body.get("kind") == "SelfSubjectAccessReview":
        return body["status"]["allowed"]
    return (403, body.get("message")) if answer["status"] == 403 else "let in"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_the_real_server_and_ours_allow_the_same_requests(servers: Servers, number: int) -> None:
    chance = random.Random(f"{SEED}/{number}")
    held = [rule(chance) for _ in range(chance.randint(1, 4))]
    headers = user_with(servers, number, held)

    for request in [*grants(chance, headers, held), *questions(chance, headers), *requests(chance, headers)]:
        real, ours = (compared_part(server.request(request)) for server in servers)
        assert ours == real, (held, request)
