"""User impersonation."""

from __future__ import annotations

import pytest

from batkube.api.access.impersonation import MissingImpersonatedUser, effective_user
from batkube.api.access.rbac_authorizer import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Authorizer
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import authenticated_user
from batkube.cluster.store import Key, Store
from batkube.kernel.instants import START

ADMIN = authenticated_user("admin", "1", ("system:masters",))
ALICE = authenticated_user("alice", "2", ())


def test_without_headers_a_user_acts_as_itself() -> None:
    assert effective_user(ALICE, {}, Authorizer(Store())) is ALICE


@pytest.mark.parametrize(
    ("headers", "name", "groups"),
    [
        ({"impersonate-user": "bob"}, "bob", ("system:authenticated",)),
        ({"impersonate-user": "bob", "impersonate-group": "a, b"}, "bob", ("a", "b", "system:authenticated")),
        (
            {"impersonate-user": "system:serviceaccount:d:sa"},
            "system:serviceaccount:d:sa",
            ("system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated"),
        ),
        ({"impersonate-user": "system:anonymous"}, "system:anonymous", ("system:unauthenticated",)),
    ],
)
def test_an_administrator_acts_as_the_user_in_the_headers(
    headers: dict[str, str], name: str, groups: tuple[str, ...]
) -> None:
    user = effective_user(ADMIN, headers, Authorizer(Store()))

    assert (user.name, user.groups, user.is_master) == (name, groups, False)


def test_impersonation_without_permission_is_forbidden() -> None:
    with pytest.raises(Failure) as refusal:
        effective_user(ALICE, {"impersonate-user": "bob"}, Authorizer(Store()))

    assert refusal.value.message == (
        'users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster '
        "scope"
    )


def test_each_impersonated_group_needs_a_permission() -> None:
    store = Store()
    rule = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]}
    store.create(CLUSTER_ROLES, [Key("r")], [{"metadata": {"name": "r"}, "rules": [rule]}], START)
    bound = {
        "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "name": "alice"}],
        "roleRef": {"kind": "ClusterRole", "name": "r"},
    }
    store.create(CLUSTER_ROLE_BINDINGS, [Key("b")], [bound], START)
    authorizer = Authorizer(store)

    assert effective_user(ALICE, {"impersonate-user": "bob"}, authorizer).name == "bob"
    with pytest.raises(Failure, match='groups "system:masters" is forbidden'):
        effective_user(ALICE, {"impersonate-user": "bob", "impersonate-group": "system:masters"}, authorizer)


def test_groups_without_a_user_are_an_error() -> None:
    with pytest.raises(MissingImpersonatedUser, match=r"requested .*Group  a .* without impersonating a user"):
        effective_user(ADMIN, {"impersonate-group": "a"}, Authorizer(Store()))
