"""Users cannot grant permissions that they do not have."""

from __future__ import annotations

import pytest

from batkube.api.access.escalation import check_escalation
from batkube.api.access.rbac_authorizer import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, RBAC_GROUP, Authorizer
from batkube.api.requests.options import WriteOptions
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User, authenticated_user
from batkube.api.requests.writes import Write
from batkube.cluster.kinds import KindTable
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import START

ADMIN = authenticated_user("admin", "1", ("system:masters",))
ALICE = authenticated_user("alice", "2", ())
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


def check_write(
    authorizer: Authorizer,
    plural: str,
    value: KubeObject,
    user: User = ALICE,
    old: KubeObject | None = None,
    path_name: str = "",
) -> None:
    """Check a write of a cluster-wide role or binding by `user`."""
    resource = KindTable.builtin().resource(RBAC_GROUP, "v1", plural)
    assert resource is not None
    options = WriteOptions(False, "tests", "Ignore", None)
    write = Write(resource, resource, "", value["metadata"]["name"], "", options, user, START, name_in_path=path_name)
    check_escalation(authorizer, write, value, old)


def role(*rules: dict[str, list[str]]) -> KubeObject:
    return {"metadata": {"name": "r"}, "rules": list(rules)}


def binding(to: str) -> KubeObject:
    return {"metadata": {"name": "b"}, "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": to}}


def authorizer(*held: dict[str, list[str]]) -> Authorizer:
    """Return an authorizer in which alice has the rules `held`, and a role `strong` exists."""
    store = Store()
    roles = [{"metadata": {"name": "own"}, "rules": list(held)}, {"metadata": {"name": "strong"}, "rules": [PODS]}]
    store.create(CLUSTER_ROLES, [Key("own"), Key("strong")], roles, START)
    bound = {**binding("own"), "subjects": [{"kind": "User", "name": "alice"}]}
    store.create(CLUSTER_ROLE_BINDINGS, [Key("b")], [bound], START)
    return Authorizer(store)


def test_permissions_that_the_user_has_can_be_granted() -> None:
    held = authorizer({"apiGroups": ["*"], "resources": ["pods", "*/log"], "verbs": ["*"]})

    for plural, value in (
        ("clusterroles", role(PODS, {**PODS, "resources": ["pods/log"]})),
        ("clusterrolebindings", binding("strong")),
    ):
        check_write(held, plural, value)
        with pytest.raises(Failure):
            check_write(authorizer(), plural, value)


def test_permissions_that_the_user_lacks_cannot_be_granted_and_are_listed() -> None:
    held = authorizer({**PODS, "verbs": ["get"]})
    wished = role(PODS, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, {**PODS, "resources": ["nodes"]})

    with pytest.raises(Failure) as refusal:
        check_write(held, "clusterroles", wished)

    assert refusal.value.message == (
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "alice" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    )


def test_a_permission_for_one_name_does_not_cover_all_names() -> None:
    held = authorizer({**PODS, "resourceNames": ["a"]})

    check_write(held, "clusterroles", role({**PODS, "resourceNames": ["a"]}))
    with pytest.raises(Failure):
        check_write(held, "clusterroles", role(PODS))


@pytest.mark.parametrize(("plural", "verb"), [("clusterroles", "escalate"), ("clusterrolebindings", "bind")])
def test_escalate_and_bind_permissions_allow_it(plural: str, verb: str) -> None:
    value = role(PODS) if plural == "clusterroles" else binding("strong")

    with pytest.raises(Failure):
        check_write(authorizer(), plural, value)
    right = {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "verbs": [verb]}
    check_write(authorizer(right), plural, value)


def test_an_administrator_may_grant_anything() -> None:
    check_write(authorizer(), "clusterroles", role(PODS), ADMIN)
    with pytest.raises(Failure):
        check_write(authorizer(), "clusterroles", role(PODS), ALICE)


def test_the_error_lists_bindings_to_missing_roles() -> None:
    store = Store()
    lost = {**binding("nope"), "subjects": [{"kind": "User", "name": "alice"}]}
    store.create(CLUSTER_ROLE_BINDINGS, [Key("b")], [lost], START)

    with pytest.raises(Failure) as refusal:
        check_write(Authorizer(store), "clusterroles", role(PODS))

    assert refusal.value.message.endswith(f'; resolution errors: [clusterroles.{RBAC_GROUP} "nope" not found]')


def test_a_binding_to_a_missing_role_is_not_found() -> None:
    with pytest.raises(Failure) as refusal:
        check_write(authorizer(), "clusterrolebindings", binding("nope"))

    assert (refusal.value.code, refusal.value.message) == (404, f'clusterrolebindings.{RBAC_GROUP} "nope" not found')


AGGREGATION = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
EVERYTHING = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)


@pytest.mark.parametrize(
    ("new", "old"),
    [(AGGREGATION, None), (AGGREGATION, {}), ({}, AGGREGATION), (AGGREGATION, AGGREGATION)],
    ids=["set on a new role", "added", "taken away", "kept"],
)
def test_only_a_user_with_all_permissions_may_write_an_aggregated_role(new: KubeObject, old: KubeObject | None) -> None:
    value = {**role(PODS), **new}
    before = None if old is None else {**role(), **old}

    for held in ((PODS,), (PODS, EVERYTHING[1])):
        with pytest.raises(Failure) as refusal:
            check_write(authorizer(*held), "clusterroles", value, old=before)
        assert refusal.value.message == (
            f'clusterroles.{RBAC_GROUP} "r" is forbidden: must have cluster-admin privileges to use the aggregationRule'
        )
    check_write(authorizer(*EVERYTHING), "clusterroles", value, old=before)
    escalate = {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "verbs": ["escalate"]}
    check_write(authorizer(escalate), "clusterroles", value, old=before)


def test_permission_to_escalate_one_role_does_not_apply_to_a_post() -> None:
    right = {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "verbs": ["escalate"], "resourceNames": ["r"]}

    check_write(authorizer(right), "clusterroles", role(PODS), old=role(), path_name="r")
    with pytest.raises(Failure):
        check_write(authorizer(right), "clusterroles", role(PODS))


def test_removing_a_finalizer_of_a_role_needs_none_of_its_permissions() -> None:
    old = {"metadata": {"name": "r", "finalizers": ["a/b"]}, "rules": [PODS]}
    released = {"metadata": {"name": "r", "resourceVersion": "7"}, "rules": [PODS]}

    labelled = {**released, "metadata": {**released["metadata"], "labels": {"a": "b"}}}

    check_write(authorizer(), "clusterroles", released, old=old)
    with pytest.raises(Failure):
        check_write(authorizer(), "clusterroles", labelled, old=old)


def test_long_lists_of_names_are_compared_quickly() -> None:
    """A comparison name by name would take hundreds of millions of steps."""
    names = [f"name-{number}" for number in range(20_000)]
    held = authorizer({**PODS, "verbs": ["get"], "resourceNames": names[:10_000]})
    wished = role({**PODS, "verbs": ["get"], "resourceNames": names})

    with pytest.raises(Failure) as refusal:
        check_write(held, "clusterroles", wished)

    assert refusal.value.message.count("ResourceNames") == 10_000


def test_more_permissions_than_can_be_compared_are_rejected() -> None:
    many = [f"v{number}" for number in range(1000)]
    wished = role({"apiGroups": many, "resources": many, "verbs": many})

    with pytest.raises(Failure, match="the rules contain 1000000000 single permissions; at most 23809 can be compared"):
        check_write(authorizer(PODS), "clusterroles", wished)
