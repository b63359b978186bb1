"""Nobody can grant rights that it does not have."""

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


def written(
    authorizer: Authorizer,
    plural: str,
    value: KubeObject,
    user: User = ALICE,
    old: KubeObject | None = None,
    path_name: str = "",
) -> None:
    """Have `user` write a role or binding of the whole cluster."""
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
    """One in which alice has the rights `held`, and there is a role `strong`."""
    store = Store()
    roles = [{"metadata": {"name": "own"}, "rules": list(held)}, {"metadata": {"name": "strong"}, "rules": [PODS]}]
    store.create(CLUSTER_ROLES, [Key("own"), Key("strong")], roles, START)
    bound = {**binding("own"), "subjects": [{"kind": "User", "name": "alice"}]}
    store.create(CLUSTER_ROLE_BINDINGS, [Key("b")], [bound], START)
    return Authorizer(store)


def test_rights_that_are_held_can_be_granted() -> None:
    held = authorizer({"apiGroups": ["*"], "resources": ["pods", "*/log"], "verbs": ["*"]})

    for plural, value in (
        ("clusterroles", role(PODS, {**PODS, "resources": ["pods/log"]})),
        ("clusterrolebindings", binding("strong")),
    ):
        written(held, plural, value)
        with pytest.raises(Failure):
            written(authorizer(), plural, value)


def test_rights_that_are_not_held_cannot_and_are_listed() -> None:
    held = authorizer({**PODS, "verbs": ["get"]})
    wished = role(PODS, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, {**PODS, "resources": ["nodes"]})

    with pytest.raises(Failure) as refusal:
        written(held, "clusterroles", wished)

    assert refusal.value.message == (
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "alice" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    )


def test_a_right_to_one_name_is_no_right_to_all() -> None:
    held = authorizer({**PODS, "resourceNames": ["a"]})

    written(held, "clusterroles", role({**PODS, "resourceNames": ["a"]}))
    with pytest.raises(Failure):
        written(held, "clusterroles", role(PODS))


@pytest.mark.parametrize(("plural", "verb"), [("clusterroles", "escalate"), ("clusterrolebindings", "bind")])
def test_a_special_right_allows_it(plural: str, verb: str) -> None:
    value = role(PODS) if plural == "clusterroles" else binding("strong")

    with pytest.raises(Failure):
        written(authorizer(), plural, value)
    right = {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "verbs": [verb]}
    written(authorizer(right), plural, value)


def test_an_administrator_may_grant_anything() -> None:
    written(authorizer(), "clusterroles", role(PODS), ADMIN)
    with pytest.raises(Failure):
        written(authorizer(), "clusterroles", role(PODS), ALICE)


def test_bindings_that_lead_nowhere_are_told_in_the_refusal() -> None:
    store = Store()
    lost = {**binding("nope"), "subjects": [{"kind": "User", "name": "alice"}]}
    store.create(CLUSTER_ROLE_BINDINGS, [Key("b")], [lost], START)

    with pytest.raises(Failure) as refusal:
        written(Authorizer(store), "clusterroles", role(PODS))

    assert refusal.value.message.endswith(f'; resolution errors: [clusterroles.{RBAC_GROUP} "nope" not found]')


def test_a_binding_to_a_missing_role_is_not_found() -> None:
    with pytest.raises(Failure) as refusal:
        written(authorizer(), "clusterrolebindings", binding("nope"))

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
def test_only_who_may_do_everything_touches_a_role_that_aggregates(new: KubeObject, old: KubeObject | None) -> None:
    value = {**role(PODS), **new}
    before = None if old is None else {**role(), **old}

    for held in ((PODS,), (PODS, EVERYTHING[1])):
        with pytest.raises(Failure) as refusal:
            written(authorizer(*held), "clusterroles", value, old=before)
        assert refusal.value.message == (
            f'clusterroles.{RBAC_GROUP} "r" is forbidden: must have cluster-admin privileges to use the aggregationRule'
        )
    written(authorizer(*EVERYTHING), "clusterroles", value, old=before)
    escalate = {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "verbs": ["escalate"]}
    written(authorizer(escalate), "clusterroles", value, old=before)


def test_a_right_to_escalate_one_role_does_not_count_for_a_posted_one_of_its_name() -> None:
    right = {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "verbs": ["escalate"], "resourceNames": ["r"]}

    written(authorizer(right), "clusterroles", role(PODS), old=role(), path_name="r")
    with pytest.raises(Failure):
        written(authorizer(right), "clusterroles", role(PODS))


def test_who_only_lets_a_role_go_needs_none_of_its_rights() -> None:
    old = {"metadata": {"name": "r", "finalizers": ["a/b"]}, "rules": [PODS]}
    released = {"metadata": {"name": "r", "resourceVersion": "7"}, "rules": [PODS]}

    labelled = {**released, "metadata": {**released["metadata"], "labels": {"a": "b"}}}

    written(authorizer(), "clusterroles", released, old=old)
    with pytest.raises(Failure):
        written(authorizer(), "clusterroles", labelled, old=old)


def test_a_long_list_of_ones_own_is_not_searched_for_every_wish() -> None:
    """Name by name, this would be hundreds of millions of comparisons."""
    names = [f"name-{number}" for number in range(20_000)]
    held = authorizer({**PODS, "verbs": ["get"], "resourceNames": names[:10_000]})
    wished = role({**PODS, "verbs": ["get"], "resourceNames": names})

    with pytest.raises(Failure) as refusal:
        written(held, "clusterroles", wished)

    assert refusal.value.message.count("ResourceNames") == 10_000


def test_more_rights_than_can_be_compared_are_refused() -> None:
    many = [f"v{number}" for number in range(1000)]
    wished = role({"apiGroups": many, "resources": many, "verbs": many})

    with pytest.raises(Failure, match="the rules contain 1000000000 single permissions; at most 23809 can be compared"):
        written(authorizer(PODS), "clusterroles", wished)
