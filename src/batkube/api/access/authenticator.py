"""Authenticate requests: map a bearer token to a user and its groups.

Tokens come from a file in the format of kube-apiserver's `--token-auth-file`, or were issued for a service account
(`service_account_tokens`). A request without a token is anonymous. A request with an invalid token is rejected with
401 (Kubernetes: apiserver/pkg/authentication).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import ANONYMOUS, User, authenticated_user
from batkube.kernel.errors import InputError

#: The audience of tokens for this server: the issuer, which is kube-apiserver's default for `--api-audiences`.
AUDIENCE = "https://kubernetes.default.svc.cluster.local"


class TokenIdentity(NamedTuple):
    """The user of a token, and those of the requested audiences that the token is valid for."""

    user: User
    audiences: Sequence[str]


class TokenRejected(Exception):
    """A token of this issuer is invalid or no longer valid; the message says why."""


class TokenIssuer(Protocol):
    """Issues tokens and authenticates them."""

    def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenIdentity | None:
        """Return the identity of a token, or None if this issuer did not issue it; raises TokenRejected."""


class Authenticator:
    """Authenticates requests and tokens."""

    def __init__(self, users: Mapping[str, User], issuer: TokenIssuer | None = None) -> None:
        self._users = dict(users)
        self._issuer = issuer
        #: The same users by the complete Authorization header, so that most requests need one lookup.
        self._users_by_header = {f"Bearer {token}": user for token, user in self._users.items()}

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Return the user of a request with these headers (lower-case names); raises a 401 for an invalid token."""
        header = headers.get("authorization")
        if header is None:
            return ANONYMOUS
        user = self._users_by_header.get(header)
        if user is not None:
            return user
        token = _bearer_token(header)
        if not token:
            return ANONYMOUS
        try:
            identity = self.authenticate_token(token)
        except TokenRejected:
            identity = None
        if identity is None:
            raise Failure(401, "Unauthorized", "Unauthorized")
        return identity.user

    def authenticate_token(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> TokenIdentity | None:
        """Return the identity of a token, or None if it is unknown; raises TokenRejected.

        Tokens of the file are valid for this server's audience only. The lookup does not leak by its timing how much of
        a guessed token is correct: a dict compares strings only if their hashes are equal, and the hash is salted.
        """
        user = self._users.get(token)
        if user is not None:
            return TokenIdentity(user, (AUDIENCE,)) if AUDIENCE in audiences else None
        return None if self._issuer is None else self._issuer.authenticate_token(token, audiences)


def _bearer_token(header: str) -> str:
    """Return the bearer token of an Authorization header, "" if it has none."""
    # Kubernetes: apiserver/pkg/authentication/request/bearertoken/bearertoken.go, AuthenticateRequest.
    parts = header.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def read_token_file(path: Path) -> dict[str, User]:
    """Return the users of a static token file by token; raises InputError.

    A line is `token,user,uid`, with an optional fourth column of groups: `"group1,group2"`.
    """
    # Kubernetes: apiserver/pkg/authentication/token/tokenfile/tokenfile.go, NewCSV.
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, problem=f"the token file cannot be read: {error}") from error
    users: dict[str, User] = {}
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        for row in reader:
            _parse_row(users, row, path, reader.line_num)
    except csv.Error as error:
        raise InputError(path, at=f"line {reader.line_num}", problem=str(error)) from error
    return users


def _parse_row(users: dict[str, User], row: list[str], path: Path, line: int) -> None:
    if not row:
        return
    remedy = 'write each line as: token,user,uid,"group1,group2" (the groups are optional)'
    if len(row) < 3:
        problem = f"a token needs at least 3 columns (token, user name, user uid), found {len(row)}"
        raise InputError(path, at=f"line {line}", problem=problem, remedy=remedy)
    token, name, uid, *groups = row
    if not token:
        raise InputError(path, at=f"line {line}", problem="the token is empty", remedy=remedy)
    if token in users:
        raise InputError(path, at=f"line {line}", problem="the token is already used on an earlier line")
    users[token] = authenticated_user(name, uid, tuple(groups[0].split(",")) if groups else ())
