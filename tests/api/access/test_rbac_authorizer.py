"""RBAC: permissions from roles and bindings."""

from __future__ import annotations

import json

import pytest

from batkube.api.access.bootstrap_roles import bootstrap_policy
from batkube.api.access.rbac_authorizer import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    AccessDecision,
    Attributes,
    Authorizer,
)
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import ANONYMOUS, User, authenticated_user
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import START
from conformance import CASES

ADMIN = authenticated_user("admin", "1", ("system:masters",))
ALICE = authenticated_user("alice", "2", ("ops",))
STORAGE = {
    "Role": ROLES,
    "ClusterRole": CLUSTER_ROLES,
    "RoleBinding": ROLE_BINDINGS,
    "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS,
}
LIST_PODS = Attributes("list", "", "v1", "pods", namespace="d")


class Policy:
    """A store for roles and bindings, and the authorizer over it."""

    def __init__(self, *, aggregates: bool = True) -> None:
        self.store = Store()
        self.authorizer = Authorizer(self.store, aggregates)

    def add(self, *objects: KubeObject) -> Policy:
        for value in objects:
            metadata = value["metadata"]
            key = Key("/".join(filter(None, (metadata.get("namespace"), metadata["name"]))))
            self.store.create(STORAGE[value["kind"]], [key], [value], START)
        return self

    def allows(self, user: User, **attributes: str) -> bool:
        return self.authorizer.authorize(user, Attributes(**attributes)).allowed


def rule(**fields: list[str]) -> dict[str, list[str]]:
    return {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], **fields}


def role(name: str, *rules: dict[str, list[str]], namespace: str = "") -> KubeObject:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"kind": "Role" if namespace else "ClusterRole", "metadata": metadata, "rules": list(rules)}


def binding(
    name: str, to: str, kind: str = "User", who: str = "alice", namespace: str = "", role_kind: str = "ClusterRole"
) -> KubeObject:
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, "namespace": namespace} if namespace else {"name": name},
        "subjects": [{"kind": kind, "name": who}],
        "roleRef": {"kind": role_kind, "name": to},
    }


def test_a_master_may_do_everything_without_any_rule() -> None:
    assert Policy().authorizer.authorize(ADMIN, LIST_PODS) == AccessDecision(True)


def test_without_a_matching_rule_nothing_is_allowed() -> None:
    assert Policy().authorizer.authorize(ALICE, LIST_PODS) == AccessDecision(False)


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        (rule(), {"verb": "get", "resource": "pods"}, True),
        (rule(), {"verb": "list", "resource": "pods"}, False),
        (rule(verbs=["*"]), {"verb": "list", "resource": "pods"}, True),
        (rule(), {"verb": "get", "group": "apps", "resource": "pods"}, False),
        (rule(apiGroups=["*"]), {"verb": "get", "group": "apps", "resource": "pods"}, True),
        (rule(), {"verb": "get", "resource": "pods", "subresource": "log"}, False),
        (rule(resources=["pods/log"]), {"verb": "get", "resource": "pods", "subresource": "log"}, True),
        (rule(resources=["*/log"]), {"verb": "get", "resource": "pods", "subresource": "log"}, True),
        (rule(resources=["*/log"]), {"verb": "get", "resource": "pods"}, False),
        (rule(resources=["*"]), {"verb": "get", "resource": "pods", "subresource": "log"}, True),
        (rule(resourceNames=["a"]), {"verb": "get", "resource": "pods", "name": "a"}, True),
        (rule(resourceNames=["a"]), {"verb": "get", "resource": "pods", "name": "b"}, False),
        (rule(resourceNames=["a"]), {"verb": "get", "resource": "pods"}, False),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, {"verb": "get", "path": "/api/v1"}, True),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, {"verb": "get", "path": "/apis"}, False),
        ({"verbs": ["get"], "nonResourceURLs": ["*"]}, {"verb": "post", "path": "/apis"}, False),
    ],
)
def test_a_rule_allows_what_it_names(given: dict[str, list[str]], asked: dict[str, str], allowed: bool) -> None:
    policy = Policy().add(role("r", given), binding("b", "r"))

    assert policy.allows(ALICE, **asked) is allowed


def test_a_role_binding_applies_in_its_namespace_only() -> None:
    policy = Policy().add(role("r", rule(), namespace="d"), binding("b", "r", namespace="d", role_kind="Role"))

    assert policy.allows(ALICE, verb="get", resource="pods", namespace="d")
    assert not policy.allows(ALICE, verb="get", resource="pods", namespace="other")
    assert not policy.allows(ALICE, verb="get", resource="pods")


def test_service_accounts_and_groups_can_be_subjects() -> None:
    account = authenticated_user("system:serviceaccount:d:sa", "u", ())
    policy = Policy().add(
        role("r", rule()),
        role("s", rule(verbs=["list"])),
        binding("local", "r", "ServiceAccount", "sa", namespace="d"),
        binding("group", "s", "Group", "ops"),
    )

    assert policy.allows(account, verb="get", resource="pods", namespace="d")
    assert not policy.allows(account, verb="list", resource="pods", namespace="d")
    assert policy.allows(ALICE, verb="list", resource="pods")


def test_the_reason_names_the_binding() -> None:
    policy = Policy().add(role("r", rule(verbs=["list"])), binding("b", "r", namespace="d"))

    decision = policy.authorizer.authorize(ALICE, LIST_PODS)

    assert decision == AccessDecision(True, 'RBAC: allowed by RoleBinding "b/d" of ClusterRole "r" to User "alice"')


def test_an_updated_role_takes_effect_at_once() -> None:
    policy = Policy().add(role("r"), binding("b", "r"))
    assert not policy.authorizer.authorize(ALICE, LIST_PODS).allowed

    policy.store.replace(CLUSTER_ROLES, [Key("r")], [role("r", rule(verbs=["list"]))], START)

    assert policy.authorizer.authorize(ALICE, LIST_PODS).allowed


def test_the_403_mentions_a_binding_to_a_missing_role() -> None:
    policy = Policy().add(binding("b", "nope"))

    with pytest.raises(Failure) as refusal:
        policy.authorizer.require(ALICE, LIST_PODS)

    assert refusal.value.message == (
        'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "d": '
        'RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found'
    )


@pytest.mark.parametrize(("aggregates", "allowed"), [(True, True), (False, False)])
def test_an_aggregated_role_has_the_rules_of_its_parts_if_aggregation_is_on(aggregates: bool, allowed: bool) -> None:
    policy = Policy(aggregates=aggregates).add(*bootstrap_policy(), binding("b", "view", namespace="d"))

    assert policy.authorizer.authorize(ALICE, LIST_PODS).allowed is allowed
    assert not policy.allows(ALICE, verb="create", resource="pods", namespace="d")


def test_a_cluster_starts_with_permissions_for_authenticated_users() -> None:
    policy = Policy().add(*bootstrap_policy())
    reviews = {"group": "authorization.k8s.io", "resource": "selfsubjectaccessreviews"}

    assert policy.allows(ALICE, verb="create", **reviews)
    assert not policy.allows(ANONYMOUS, verb="create", **reviews)
    assert policy.allows(ALICE, verb="get", path="/api")
    assert policy.allows(ANONYMOUS, verb="get", path="/version")
    assert not policy.allows(ANONYMOUS, verb="get", path="/api")
    scheduler = authenticated_user("system:kube-scheduler", "", ())
    assert policy.allows(scheduler, verb="create", resource="pods", subresource="binding", namespace="d")


def test_403s_of_anonymous_requests_match_the_recorded_ones() -> None:
    case = json.loads((CASES / "auth/anonymous.json").read_text())
    policy = Policy().add(*bootstrap_policy())
    verbs = {"GET": "get", "POST": "create", "DELETE": "delete"}

    refused = [step for step in case["steps"] if step["response"]["status"] == 403]
    assert refused
    for step in refused:
        method, path = step["request"]["method"], step["request"]["path"]
        parts = path.strip("/").split("/")
        if parts[0] not in ("api", "apis") or len(parts) < 3:
            attributes = Attributes(method.lower(), path=path)
        else:
            group, version, *rest = ("", *parts[1:]) if parts[0] == "api" else parts[1:]
            namespace = rest[1] if rest[0] == "namespaces" else ""
            resource, *name = rest[2:] if namespace else rest
            verb = "list" if method == "GET" and not name else verbs[method]
            attributes = Attributes(verb, group, version, resource, "", namespace, name[0] if name else "")

        with pytest.raises(Failure) as refusal:
            policy.authorizer.require(ANONYMOUS, attributes)

        assert refusal.value.status() == step["response"]["body"]
