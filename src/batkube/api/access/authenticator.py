"""Who sends a request: a bearer token leads to a user and the groups that it is in.

Tokens come from a file in the format of kube-apiserver's `--token-auth-file`, or were issued for a service account
(`service_account_tokens`). A request without a token is anonymous; one with a wrong token is refused, whatever it asks
for (Kubernetes: apiserver/pkg/authentication).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import ANONYMOUS, User, authenticated_user
from batkube.kernel.errors import InputError

#: Whom tokens that are accepted here are meant for; the issuer's name, as kube-apiserver does by default.
AUDIENCE = "https://kubernetes.default.svc.cluster.local"


class TokenIdentity(NamedTuple):
    """Whose a token is, and for which of the audiences asked about it is meant."""

    user: User
    audiences: Sequence[str]


class TokenRejected(Exception):
    """A token that was issued here, and is not accepted or not any more; says why."""


class TokenIssuer(Protocol):
    """Something that issued tokens and recognises them."""

    def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenIdentity | None:
        """Return whose token it is, or None if it did not issue it; raises TokenRejected."""


class Authenticator:
    """Finds out who sends a request."""

    def __init__(self, users: Mapping[str, User], issuer: TokenIssuer | None = None) -> None:
        self._users = dict(users)
        self._issuer = issuer
        #: The same users by the whole header that most clients send, so that a request costs one look-up.
        self._users_by_header = {f"Bearer {token}": user for token, user in self._users.items()}

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """Return who sends a request with these headers (names in lower case); raises a 401 for a wrong token."""
        header = headers.get("authorization")
        if header is None:
            return ANONYMOUS
        known = self._users_by_header.get(header)
        if known is not None:
            return known
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
        """Return whose token it is, None if nobody's; raises TokenRejected.

        Tokens of a file are meant for this server only. A guess at one takes no longer for being nearly right: the
        table compares texts of the same hash alone, which is salted by chance in every process.
        """
        user = self._users.get(token)
        if user is not None:
            return TokenIdentity(user, (AUDIENCE,)) if AUDIENCE in audiences else None
        return None if self._issuer is None else self._issuer.authenticate_token(token, audiences)


def _bearer_token(header: str) -> str:
    """Return the token of an Authorization header, "" if it carries none (apiserver: request/bearertoken)."""
    parts = header.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def read_token_file(path: Path) -> dict[str, User]:
    """Return the users of a static token file by token; raises InputError.

    A line is `token,user,uid` with, if wanted, a fourth column of groups: `"group1,group2"`.
    """
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
    remedy = 'a line is: token,user,uid,"group1,group2" (the groups may be left out)'
    if len(row) < 3:
        problem = f"a token needs at least 3 columns (token, user name, user uid), found {len(row)}"
        raise InputError(path, at=f"line {line}", problem=problem, remedy=remedy)
    token, name, uid, *groups = row
    if not token:
        raise InputError(path, at=f"line {line}", problem="the token is empty", remedy=remedy)
    if token in users:
        raise InputError(path, at=f"line {line}", problem="the token was given before, on an earlier line")
    users[token] = authenticated_user(name, uid, tuple(groups[0].split(",")) if groups else ())
