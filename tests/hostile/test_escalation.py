"""Users who may write roles, bindings or definitions gain no permissions, and limited read permissions stay limited.

Alice may do everything with roles, bindings and custom definitions, except grant permissions that she does not have.
Every attempt is made twice, the second time as a dry run. Afterwards she still cannot read secrets.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import NamedTuple

import pytest

from batkube.api.requests.users import user_in_groups
from batkube.cluster.store import KubeObject
from clients.serving import served
from conformance.client import Client
from conformance.direct import APPLY, JSON_PATCH, MERGE, STRATEGIC, Answer, Direct
from conformance.placeholders import Json

RBAC = "rbac.authorization.k8s.io"
ROOT = f"/apis/{RBAC}/v1"
HERE = f"{ROOT}/namespaces/default"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ALICE = {"kind": "User", "apiGroup": RBAC, "name": "alice"}
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
SECRETS = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
OWN = [
    {
        "apiGroups": [RBAC],
        "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
        "verbs": VERBS,
    },
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": VERBS},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"], "resourceNames": ["mine"]},
    {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": VERBS},
]


def role(kind: str, name: str, rules: list[KubeObject] | None = None, **parts: Json) -> KubeObject:
    value = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name}, **parts}
    return value if rules is None else {**value, "rules": rules}


def binding(kind: str, name: str, to: str, *subjects: KubeObject, role_kind: str = "ClusterRole") -> KubeObject:
    reference = {"apiGroup": RBAC, "kind": role_kind, "name": to}
    return role(kind, name, roleRef=reference, subjects=list(subjects))


class Cluster:
    """A server in which alice has some permissions, and others have more."""

    def __init__(self) -> None:
        self.server = Direct()
        self.admin(f"{ROOT}/clusterroles", role("ClusterRole", "own", OWN))
        self.admin(f"{ROOT}/clusterrolebindings", binding("ClusterRoleBinding", "own", "own", ALICE))
        self.admin(f"{ROOT}/clusterroles", role("ClusterRole", "strong", EVERYTHING))
        self.admin(f"{ROOT}/clusterroles", role("ClusterRole", "gathered", aggregationRule=GATHERING))
        self.admin(f"{HERE}/roles", role("Role", "strong", SECRETS))
        boss = {**ALICE, "name": "boss"}
        self.admin(f"{ROOT}/clusterrolebindings", binding("ClusterRoleBinding", "boss", "strong", boss))
        self.admin(f"{HERE}/rolebindings", binding("RoleBinding", "boss", "strong", boss, role_kind="Role"))
        for name in ("mine", "other"):
            config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
            self.admin("/api/v1/namespaces/default/configmaps", config)

    def admin(self, path: str, value: KubeObject) -> None:
        assert self.server.ask("POST", path, value).status == 201

    def alice(
        self, method: str, path: str, body: Json = None, content_type: str = "application/json", **query: str
    ) -> Answer:
        return self.server.ask(method, path, body, content_type=content_type, query=query, token="user-token")

    def is_safe(self) -> bool:
        """Return whether alice still cannot read secrets and all important roles still exist."""
        paths = ("/api/v1/secrets", "/api/v1/namespaces/default/secrets")
        return all(self.alice("GET", path).status == 403 for path in paths) and not self._lost()

    def _lost(self) -> list[str]:
        names = ("cluster-admin", "admin", "strong", "system:kube-scheduler")
        return [name for name in names if self.server.ask("GET", f"{ROOT}/clusterroles/{name}").status != 200]


#: Aggregates the rules of all roles.
GATHERING = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "nobody", "operator": "DoesNotExist"}]}]}


class Attempt(NamedTuple):
    """A request by which alice would gain permissions."""

    method: str
    path: str
    body: Json
    content_type: str = "application/json"


_PATCHED_RULES = [{"op": "replace", "path": "/rules", "value": EVERYTHING}]
_MORE = {"metadata": {"finalizers": ["a/b"]}, "rules": EVERYTHING}

ATTEMPTS = {
    "a new role": Attempt("POST", f"{HERE}/roles", role("Role", "new", SECRETS)),
    "a new cluster role": Attempt("POST", f"{ROOT}/clusterroles", role("ClusterRole", "new", EVERYTHING)),
    "a role by PUT": Attempt("PUT", f"{HERE}/roles/new", role("Role", "new", SECRETS)),
    "a role by apply": Attempt("PATCH", f"{HERE}/roles/new", role("Role", "new", SECRETS), APPLY),
    "her own role by PUT": Attempt("PUT", f"{ROOT}/clusterroles/own", role("ClusterRole", "own", EVERYTHING)),
    "her own role by merge": Attempt("PATCH", f"{ROOT}/clusterroles/own", {"rules": EVERYTHING}, MERGE),
    "her own role by strategy": Attempt("PATCH", f"{ROOT}/clusterroles/own", {"rules": EVERYTHING}, STRATEGIC),
    "her own role by JSON patch": Attempt("PATCH", f"{ROOT}/clusterroles/own", _PATCHED_RULES, JSON_PATCH),
    "rules beside a finalizer": Attempt("PATCH", f"{ROOT}/clusterroles/own", _MORE, MERGE),
    "a role that gathers": Attempt(
        "POST", f"{ROOT}/clusterroles", role("ClusterRole", "new", aggregationRule=GATHERING)
    ),
    "her own role gathers": Attempt("PATCH", f"{ROOT}/clusterroles/own", {"aggregationRule": GATHERING}, MERGE),
    "her own role is applied to gather": Attempt(
        "PATCH", f"{ROOT}/clusterroles/own", role("ClusterRole", "own", aggregationRule=GATHERING), APPLY
    ),
    "a gathering role is relabelled": Attempt(
        "PATCH", f"{ROOT}/clusterroles/gathered", {"metadata": {"labels": {"a": "b"}}}, MERGE
    ),
    "a gathering role gathers no more": Attempt(
        "PATCH", f"{ROOT}/clusterroles/gathered", {"aggregationRule": None}, MERGE
    ),
    "a binding to a strong role": Attempt(
        "POST", f"{HERE}/rolebindings", binding("RoleBinding", "new", "strong", ALICE, role_kind="Role")
    ),
    "a binding to the administrator's role": Attempt(
        "POST", f"{ROOT}/clusterrolebindings", binding("ClusterRoleBinding", "new", "cluster-admin", ALICE)
    ),
    "a binding by PUT": Attempt(
        "PUT", f"{HERE}/rolebindings/new", binding("RoleBinding", "new", "cluster-admin", ALICE)
    ),
    "a binding by apply": Attempt(
        "PATCH", f"{HERE}/rolebindings/new", binding("RoleBinding", "new", "cluster-admin", ALICE), APPLY
    ),
    "a seat in the boss's binding": Attempt(
        "PATCH", f"{ROOT}/clusterrolebindings/boss", {"subjects": [ALICE]}, MERGE
    ),
    "a seat beside the boss": Attempt(
        "PATCH", f"{HERE}/rolebindings/boss", [{"op": "add", "path": "/subjects/-", "value": ALICE}], JSON_PATCH
    ),
    "another role in her own binding": Attempt(
        "PATCH", f"{ROOT}/clusterrolebindings/own", {"roleRef": {"name": "strong"}}, MERGE
    ),
}  # fmt: skip


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_permissions_that_a_user_lacks_are_not_granted(attempt: Attempt) -> None:
    cluster = Cluster()
    manager = {"fieldManager": "alice", "force": "true"} if attempt.content_type == APPLY else {}

    for query in ({}, {"dryRun": "All"}):
        answer = cluster.alice(*attempt, **manager, **query)
        assert answer.status in (403, 422), answer
        assert cluster.is_safe()


@pytest.mark.parametrize("plural", ["clusterroles", "clusterrolebindings", "rolebindings", "roles"])
@pytest.mark.parametrize("version", ["v1", "v2", "v1beta1"])
def test_a_custom_definition_cannot_replace_or_delete_roles(plural: str, version: str) -> None:
    cluster = Cluster()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    name, kind = f"{plural}.{RBAC}", "ClusterRole" if "cluster" in plural else "Role"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, an attack"}},
        "spec": {
            "group": RBAC,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }

    assert cluster.alice("POST", DEFINITIONS, definition).status == 201
    for value in (
        role(kind, "new", EVERYTHING),
        binding("ClusterRoleBinding", "new", "strong", ALICE),
        binding("RoleBinding", "new", "strong", ALICE),
    ):
        path = f"/apis/{RBAC}/{version}/{plural}"
        cluster.alice("POST", path, {**value, "apiVersion": f"{RBAC}/{version}", "kind": kind})
        assert cluster.is_safe()
    assert cluster.alice("DELETE", f"{DEFINITIONS}/{name}").status == 200
    assert cluster.is_safe()
    assert cluster.alice("GET", f"{DEFINITIONS}/{name}").status == 404


def test_permission_to_update_does_not_allow_creation() -> None:
    cluster = Cluster()
    rules = [{"apiGroups": ["coordination.k8s.io", ""], "resources": ["*"], "verbs": ["update", "patch"]}]
    cluster.admin(f"{ROOT}/clusterroles", role("ClusterRole", "updating", rules))
    cluster.admin(f"{ROOT}/clusterrolebindings", binding("ClusterRoleBinding", "updating", "updating", ALICE))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new"}}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "new"}}
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    for query in ({}, {"dryRun": "All"}):
        assert cluster.alice("PUT", f"{leases}/new", lease, **query).status == 403
        applied = {"fieldManager": "alice", **query}
        assert cluster.alice("PATCH", f"{leases}/new", lease, APPLY, **applied).status == 403
        assert cluster.alice("PATCH", "/api/v1/namespaces/default/secrets/new", secret, APPLY, **applied).status == 403
    assert cluster.server.ask("GET", f"{leases}/new").status == 404
    assert cluster.server.ask("GET", "/api/v1/namespaces/default/secrets/new").status == 404


CONFIGS = "/api/v1/namespaces/default/configmaps"


def test_permission_for_one_name_shows_no_other_object_by_any_selector() -> None:
    cluster = Cluster()

    found = cluster.alice("GET", CONFIGS, fieldSelector="metadata.name=mine")
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["mine"]
    for selector in (
        "metadata.name!=nobody",
        "metadata.name=other",
        "metadata.name=other,metadata.name=mine",
        "metadata.name!=mine",
        "metadata.namespace=default",
        "metadata.name=mine,metadata.name=",
        "metadata.name=",
        "metadata.name=.",
        "=mine",
        "metadata.name=mine,nonsense",
        "",
    ):
        answer = cluster.alice("GET", CONFIGS, fieldSelector=selector)
        shown = [item["metadata"]["name"] for item in answer.body.get("items", ())]
        assert answer.status == 403 or shown in ([], ["mine"]), (selector, answer)
        assert "other" not in shown
    both = {"fieldSelector": "metadata.name=mine", "labelSelector": "!nothing"}
    assert len(cluster.alice("GET", CONFIGS, **both).body["items"]) == 1
    assert cluster.alice("DELETE", CONFIGS, fieldSelector="metadata.name=mine").status == 403


def test_a_forged_continue_token_does_not_lead_to_another_namespace() -> None:
    cluster = Cluster()
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    cluster.admin(f"{HERE}/roles", role("Role", "listing", rules))
    cluster.admin(f"{HERE}/rolebindings", binding("RoleBinding", "listing", "listing", ALICE, role_kind="Role"))
    elsewhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "secret-plan"}}
    cluster.admin("/api/v1/namespaces/kube-system/configmaps", elsewhere)

    for start in ("/a", "/../kube-system/", "kube-system/", "/\u0000", "//", "../"):
        text = f'{{"v":"meta.k8s.io/v1","rv":-1,"start":"{start}"}}'.replace("\u0000", "\\u0000")
        token = base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
        answer = cluster.alice("GET", CONFIGS, **{"continue": token})
        assert "secret-plan" not in str(answer.body)
        assert answer.status in (200, 400)


@pytest.mark.parametrize(
    "path",
    [
        "//api/v1/namespaces/default/secrets",
        "/api/v1//namespaces/default/secrets",
        "/api/v1/namespaces//secrets",
        "/api/v1/namespaces/default//secrets",
        "/api/v1/namespaces/default/secrets/",
        "/api/v1/namespaces/default/configmaps/mine/../../secrets",
        "/api/v1/namespaces/default/configmaps/../secrets",
        "/api/v1/watch/namespaces/default/secrets",
        "/api/v1/proxy/namespaces/default/secrets/x",
        "/apis//v1/secrets",
        "/apis/v1/secrets",
        "/api/v1/SECRETS",
        "/version/../api/v1/secrets",
        "/openapi/../api/v1/secrets",
        "/metrics",
        "/metrics/",
        "//metrics",
        "/version/../metrics",
        "/openapi//../metrics",
        "/logs/",
    ],
)
def test_no_spelling_of_a_path_bypasses_authorization(path: str) -> None:
    cluster = Cluster()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "treasure"}}
    cluster.admin("/api/v1/namespaces/default/secrets", secret)

    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        answer = cluster.alice(method, path)
        assert answer.status in (400, 403, 404, 405), (method, answer)
        assert "treasure" not in str(answer.body)
    assert cluster.server.ask("GET", "/api/v1/namespaces/default/secrets/treasure").status == 200


def test_impersonation_requires_permission() -> None:
    cluster = Cluster()
    for headers in (
        {"impersonate-user": "admin"},
        {"impersonate-user": "alice", "impersonate-group": "system:masters"},
        {"impersonate-user": "system:serviceaccount:kube-system:robot"},
        {"impersonate-user": "alice", "impersonate-uid": "1"},
        {"impersonate-user": "alice", "impersonate-extra-scopes": "all"},
    ):
        request = cluster.server._request("GET", "/api/v1/secrets", None, "", {})
        request.headers = {**request.headers, "authorization": "Bearer user-token", **headers}
        assert cluster.server.api.handle(request).status == 403  # type: ignore[union-attr]


def test_access_reviews_agree_with_decisions() -> None:
    """A rule for all resources does not apply to paths, not even to an empty one."""
    cluster = Cluster()
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}]
    cluster.admin(f"{ROOT}/clusterroles", role("ClusterRole", "reading", rules))
    cluster.admin(f"{ROOT}/clusterrolebindings", binding("ClusterRoleBinding", "reading", "reading", ALICE))
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    for asked in ("", "/metrics", "/logs"):
        spec = {"nonResourceAttributes": {"verb": "get", "path": asked}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        assert cluster.alice("POST", path, review).body["status"]["allowed"] is False
    assert cluster.alice("GET", "/metrics").status == 403


def test_only_the_exact_group_system_masters_is_privileged() -> None:
    for group in ("System:Masters", "system:masters ", " system:masters", "system:masters\x00", "system:master"):
        assert not user_in_groups("x", "", (group,)).is_master


def test_permission_for_the_metrics_of_one_node_shows_no_other(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('admin-token,admin,1,"system:masters"\nuser-token,alice,2\n')
    rules = [{"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["list"], "resourceNames": ["node-1"]}]
    path = "/apis/metrics.k8s.io/v1beta1/nodes"

    with served(tmp_path / "out", "--platform", "3x4", "--token-auth-file", str(tokens)) as server:
        client = Client(server.url)
        for plural, value in (
            ("clusterroles", role("ClusterRole", "metrics", rules)),
            ("clusterrolebindings", binding("ClusterRoleBinding", "metrics", "metrics", ALICE)),
        ):
            created = client.request({"method": "POST", "path": f"{ROOT}/{plural}", "body": value})
            assert created["status"] == 201
        for selector, status, names in (
            ("metadata.name=node-1", 200, ["node-1"]),
            ("metadata.name=node-2", 403, []),
            ("metadata.name!=node-2", 403, []),
        ):
            query = {"fieldSelector": selector}
            answer = client.request({"method": "GET", "path": path, "query": query, "auth": "user"})
            shown = [item["metadata"]["name"] for item in answer["body"].get("items", ())]
            assert (answer["status"], shown) == (status, names)
        client.close()


MANY = [f"v{number}" for number in range(2000)]


@pytest.mark.parametrize(
    "rule",
    [
        {"apiGroups": MANY, "resources": MANY, "verbs": MANY, "resourceNames": MANY},
        {"nonResourceURLs": [f"/{name}/*" for name in MANY], "verbs": MANY},
    ],
    ids=["resources", "paths"],
)
def test_a_rule_with_billions_of_permissions_is_rejected_at_once(rule: KubeObject) -> None:
    cluster = Cluster()

    answer = cluster.alice("POST", f"{ROOT}/clusterroles", role("ClusterRole", "vast", [rule]))

    assert answer.status == 403
    assert "single permissions; at most" in answer.body["message"]
