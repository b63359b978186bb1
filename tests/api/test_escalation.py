"""Nobody can grant rights that it does not have."""

from __future__ import annotations

import pytest

from batkube.api.authentication import authenticated
from batkube.api.authorization import CLUSTER_BINDINGS, CLUSTER_ROLES, GROUP, Authorizer
from batkube.api.escalation import refuse_escalation
from batkube.api.statuses import Failure
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import START

ADMIN = authenticated("admin", "1", ("system:masters",))
ALICE = authenticated("alice", "2", ())
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


def role(*rules: dict[str, list[str]]) -> KubeObject:
    return {"metadata": {"name": "r"}, "rules": list(rules)}


def binding(to: str) -> KubeObject:
    return {"metadata": {"name": "b"}, "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": to}}


def authorizer(*held: dict[str, list[str]]) -> Authorizer:
    """One in which alice has the rights `held`, and there is a role `strong`."""
    store = Store()
    roles = [{"metadata": {"name": "own"}, "rules": list(held)}, {"metadata": {"name": "strong"}, "rules": [PODS]}]
    store.create(CLUSTER_ROLES, [Key("own"), Key("strong")], roles, START)
    bound = {**binding("own"), "subjects": [{"kind": "User", "name": "alice"}]}
    store.create(CLUSTER_BINDINGS, [Key("b")], [bound], START)
    return Authorizer(store)


def test_rights_that_are_held_can_be_granted() -> None:
    held = authorizer({"apiGroups": ["*"], "resources": ["pods", "*/log"], "verbs": ["*"]})

    refuse_escalation(held, ALICE, "clusterroles", role(PODS, {**PODS, "resources": ["pods/log"]}), "")
    refuse_escalation(held, ALICE, "clusterrolebindings", binding("strong"), "")


def test_rights_that_are_not_held_cannot_and_are_listed() -> None:
    held = authorizer({**PODS, "verbs": ["get"]})
    wished = role(PODS, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, {**PODS, "resources": ["nodes"]})

    with pytest.raises(Failure) as refusal:
        refuse_escalation(held, ALICE, "clusterroles", wished, "")

    assert refusal.value.message == (
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "alice" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    )


def test_a_right_to_one_name_is_no_right_to_all() -> None:
    held = authorizer({**PODS, "resourceNames": ["a"]})

    refuse_escalation(held, ALICE, "clusterroles", role({**PODS, "resourceNames": ["a"]}), "")
    with pytest.raises(Failure):
        refuse_escalation(held, ALICE, "clusterroles", role(PODS), "")


@pytest.mark.parametrize(("plural", "verb"), [("clusterroles", "escalate"), ("clusterrolebindings", "bind")])
def test_a_special_right_allows_it(plural: str, verb: str) -> None:
    value = role(PODS) if plural == "clusterroles" else binding("strong")

    with pytest.raises(Failure):
        refuse_escalation(authorizer(), ALICE, plural, value, "")
    right = {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": [verb]}
    refuse_escalation(authorizer(right), ALICE, plural, value, "")


def test_an_administrator_may_grant_anything() -> None:
    refuse_escalation(authorizer(), ADMIN, "clusterroles", role(PODS), "")


def test_bindings_that_lead_nowhere_are_told_in_the_refusal() -> None:
    store = Store()
    lost = {**binding("nope"), "subjects": [{"kind": "User", "name": "alice"}]}
    store.create(CLUSTER_BINDINGS, [Key("b")], [lost], START)

    with pytest.raises(Failure) as refusal:
        refuse_escalation(Authorizer(store), ALICE, "clusterroles", role(PODS), "")

    assert refusal.value.message.endswith(f'; resolution errors: [clusterroles.{GROUP} "nope" not found]')


def test_a_binding_to_a_missing_role_is_not_found() -> None:
    with pytest.raises(Failure) as refusal:
        refuse_escalation(authorizer(), ALICE, "clusterrolebindings", binding("nope"), "")

    assert (refusal.value.code, refusal.value.message) == (404, f'clusterrolebindings.{GROUP} "nope" not found')
