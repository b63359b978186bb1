"""Users and their groups."""

from __future__ import annotations

import msgspec

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"


class User(msgspec.Struct, frozen=True):
    """The authenticated (or anonymous) sender of requests."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    #: Extra fields, such as the pod that a service account token is bound to.
    extra: dict[str, tuple[str, ...]] = {}
    #: Whether the user is in `system:masters`, which may do everything.
    is_master: bool = False


def user_in_groups(
    name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]] | None = None
) -> User:
    """Return a user with exactly these groups."""
    return User(name, uid, groups, extra or {}, MASTERS in groups)


ANONYMOUS = user_in_groups("system:anonymous", "", ("system:unauthenticated",))


def authenticated_user(
    name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]] | None = None
) -> User:
    """Return an authenticated user, which also belongs to `system:authenticated`.

    Kubernetes: apiserver/pkg/authentication/group/authenticated_group_adder.go.
    """
    is_explicit = name == ANONYMOUS.name or AUTHENTICATED in groups or ANONYMOUS.groups[0] in groups
    return user_in_groups(name, uid, groups if is_explicit else (*groups, AUTHENTICATED), extra)
