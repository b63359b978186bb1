"""Users: who sends requests, and the groups that everybody is in."""

from __future__ import annotations

import msgspec

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"


class User(msgspec.Struct, frozen=True):
    """Someone who sends requests."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    #: More about the user, such as the pod that a service account's token was issued for.
    extra: dict[str, tuple[str, ...]] = {}
    #: Whether the user is in the group that may do everything.
    is_master: bool = False


def user_in_groups(
    name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]] | None = None
) -> User:
    """Return a user of exactly these groups."""
    return User(name, uid, groups, extra or {}, MASTERS in groups)


ANONYMOUS = user_in_groups("system:anonymous", "", ("system:unauthenticated",))


def authenticated_user(
    name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]] | None = None
) -> User:
    """Return a user who has shown who it is, and so belongs to one group more, unless it says that it has not.

    Kubernetes: apiserver/pkg/authentication/group/authenticated_group_adder.go.
    """
    is_told = name == ANONYMOUS.name or AUTHENTICATED in groups or ANONYMOUS.groups[0] in groups
    return user_in_groups(name, uid, groups if is_told else (*groups, AUTHENTICATED), extra)
