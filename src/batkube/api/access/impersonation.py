"""Acting as somebody else: `kubectl --as`.

Headers name the user, groups, uid and extra that a request shall be taken to come from. Whoever sends it must have the
right to impersonate each of these (Kubernetes: apiserver/pkg/endpoints/filters/impersonation.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from batkube.api.access.rbac_authorizer import Attributes, Authorizer
from batkube.api.requests.users import ANONYMOUS, AUTHENTICATED, User, user_in_groups
from batkube.api.validation.names import dns_label, dns_subdomain

_PREFIX = "impersonate-"
_USER = "impersonate-user"
_GROUP = "impersonate-group"
_UID = "impersonate-uid"
_EXTRA = "impersonate-extra-"
_AUTHENTICATION_API = "authentication.k8s.io/v1"
_UNAUTHENTICATED_GROUP = ANONYMOUS.groups[0]

_SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


class MissingImpersonatedUser(Exception):
    """A request names groups or the like, but no user to act as; the real server answers 500 in plain text."""


def effective_user(user: User, headers: Mapping[str, str], authorizer: Authorizer) -> User:
    """Return whom `user` acts as by these headers (names in lower case), itself if there are none; raises Failure."""
    if _PREFIX not in " ".join(headers):  # every request is asked; the rest of this is for few
        return user
    name = headers.get(_USER, "")
    groups = _split_values(headers[_GROUP]) if _GROUP in headers else ()
    extra = {
        unquote(header.removeprefix(_EXTRA)): _split_values(value)
        for header, value in headers.items()
        if header.startswith(_EXTRA)
    }
    uid = headers.get(_UID, "")
    if not (name or groups or extra or uid):
        return user
    if not name:
        wanted = [f"{{Group  {group}    }}" for group in groups]
        wanted += [
            f"{{UserExtra  {value}  {_AUTHENTICATION_API}  {key}}}" for key, values in extra.items() for value in values
        ]
        wanted += [f"{{UID  {uid}  {_AUTHENTICATION_API}  }}"] if uid else []
        raise MissingImpersonatedUser(f"requested [{' '.join(wanted)}] without impersonating a user")
    for attributes in _required_permissions(name, groups, extra, uid):
        authorizer.require(user, attributes)
    account = _service_account(name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}")
    return user_in_groups(name, uid, _with_default_group(name, groups), extra)


class _ImpersonatedAccount(NamedTuple):
    namespace: str
    name: str


def _service_account(user: str) -> _ImpersonatedAccount | None:
    """Return the service account that a user's name stands for; one of a name that none can have is a plain user.

    Kubernetes: apiserver/pkg/authentication/serviceaccount/util.go, SplitUsername.
    """
    namespace, colon, name = user.removeprefix(_SERVICE_ACCOUNT_PREFIX).partition(":")
    if not user.startswith(_SERVICE_ACCOUNT_PREFIX) or not colon or dns_label(namespace) or dns_subdomain(name):
        return None
    return _ImpersonatedAccount(namespace, name)


def _split_values(header: str) -> tuple[str, ...]:
    """Return the values of a header that was sent several times, and came here as one."""
    return tuple(value.strip() for value in header.split(","))


def _required_permissions(
    name: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]], uid: str
) -> list[Attributes]:
    """Return what must be allowed, one by one."""
    account, verb, about = _service_account(name), "impersonate", "authentication.k8s.io"
    if account:
        wishes = [Attributes(verb, "", "v1", "serviceaccounts", namespace=account.namespace, name=account.name)]
    else:
        wishes = [Attributes(verb, "", "v1", "users", name=name)]
    wishes += [Attributes(verb, "", "v1", "groups", name=group) for group in groups]
    wishes += [
        Attributes(verb, about, "v1", "userextras", key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        wishes.append(Attributes(verb, about, "v1", "uids", name=uid))
    return wishes


def _with_default_group(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Add the group of all known users, or of all unknown ones, unless the headers say which."""
    if name == ANONYMOUS.name:
        return groups if _UNAUTHENTICATED_GROUP in groups else (*groups, _UNAUTHENTICATED_GROUP)
    return groups if AUTHENTICATED in groups or _UNAUTHENTICATED_GROUP in groups else (*groups, AUTHENTICATED)
