"""User impersonation (`kubectl --as`).

`Impersonate-*` headers name the user, groups, uid and extra fields to act as. The sender needs the verb `impersonate`
on each of them (Kubernetes: apiserver/pkg/endpoints/filters/impersonation.go).
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
    """A request impersonates groups, a uid or extra fields but no user; kube-apiserver answers 500 in plain text."""


def effective_user(user: User, headers: Mapping[str, str], authorizer: Authorizer) -> User:
    """Return the user that the headers (lower-case names) name, or `user` if they name none; raises Failure."""
    if _PREFIX not in " ".join(headers):  # fast path, since this runs for every request
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
        requested = [f"{{Group  {group}    }}" for group in groups]
        requested += [
            f"{{UserExtra  {value}  {_AUTHENTICATION_API}  {key}}}" for key, values in extra.items() for value in values
        ]
        requested += [f"{{UID  {uid}  {_AUTHENTICATION_API}  }}"] if uid else []
        raise MissingImpersonatedUser(f"requested [{' '.join(requested)}] without impersonating a user")
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
    """Return the service account of a user name, or None if it is not a valid service account user name.

    Kubernetes: apiserver/pkg/authentication/serviceaccount/util.go, SplitUsername.
    """
    namespace, colon, name = user.removeprefix(_SERVICE_ACCOUNT_PREFIX).partition(":")
    if not user.startswith(_SERVICE_ACCOUNT_PREFIX) or not colon or dns_label(namespace) or dns_subdomain(name):
        return None
    return _ImpersonatedAccount(namespace, name)


def _split_values(header: str) -> tuple[str, ...]:
    """Return the values of a repeated header, which the HTTP parser joins with commas."""
    return tuple(value.strip() for value in header.split(","))


def _required_permissions(
    name: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]], uid: str
) -> list[Attributes]:
    """Return the permissions that impersonation requires, in the order in which they are checked."""
    account, verb, group_name = _service_account(name), "impersonate", "authentication.k8s.io"
    if account:
        required = [Attributes(verb, "", "v1", "serviceaccounts", namespace=account.namespace, name=account.name)]
    else:
        required = [Attributes(verb, "", "v1", "users", name=name)]
    required += [Attributes(verb, "", "v1", "groups", name=group) for group in groups]
    required += [
        Attributes(verb, group_name, "v1", "userextras", key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        required.append(Attributes(verb, group_name, "v1", "uids", name=uid))
    return required


def _with_default_group(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Add `system:authenticated`, or `system:unauthenticated` for the anonymous user, unless the headers name
    either."""
    if name == ANONYMOUS.name:
        return groups if _UNAUTHENTICATED_GROUP in groups else (*groups, _UNAUTHENTICATED_GROUP)
    return groups if AUTHENTICATED in groups or _UNAUTHENTICATED_GROUP in groups else (*groups, AUTHENTICATED)
