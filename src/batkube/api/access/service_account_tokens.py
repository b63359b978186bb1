"""Issue and authenticate service account tokens.

A token is a JSON Web Token with the claims of kube-apiserver (Kubernetes: pkg/serviceaccount/claims.go). It is valid
until it expires, while the service account and the object it is bound to exist with the same uid.

The signing key is generated from the system's entropy at every start and never leaves the process. Reproducible
results cannot depend on it, since a token has the same length whatever the key is.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import random
import secrets
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from batkube.api.access.authenticator import AUDIENCE, TokenIdentity, TokenRejected
from batkube.api.requests.users import User, authenticated_user
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import EPOCH, NANOSECONDS_PER_SECOND, Duration, Instant, after, instant_of
from batkube.text.go_format import go_quote

SERVICE_ACCOUNTS = "serviceaccounts"
_HEADER = {"alg": "HS256", "typ": "JWT"}
_EPOCH_S = int(EPOCH.timestamp())
_KEY_BYTES = 32
#: How long a token stays valid after the deletionTimestamp of its account or bound object (go-jose: DefaultLeeway).
_LEEWAY = Duration(60 * NANOSECONDS_PER_SECOND)
_ACCOUNT_CLAIM = "serviceaccount"
_INVALIDATED_MESSAGE = "service account token has been invalidated"
#: Objects that a token can be bound to: the claim, the kind in the store, and whether it is namespaced.
_BOUND_OBJECT_CLAIMS = (("pod", "pods", True), ("secret", "secrets", True), ("node", "nodes", False))


def _unix_s(now: Instant) -> int:
    return _EPOCH_S + now // NANOSECONDS_PER_SECOND


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _object_reference(value: KubeObject) -> dict[str, str]:
    metadata = value["metadata"]
    return {key: metadata[key] for key in ("name", "uid") if metadata.get(key)}


class ServiceAccountTokens:
    """Issues and authenticates tokens."""

    def __init__(self, store: Store, identities: random.Random, now: Callable[[], Instant]) -> None:
        """Create the issuer. `identities` draws the ids of tokens (`jti`), which need not be secret."""
        self._store = store
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._id_rng = identities
        self._now = now

    def issue(
        self,
        account: KubeObject,
        bound: dict[str, KubeObject],
        audiences: Sequence[str],
        lifetime_s: int | None,
        now: Instant,
    ) -> str:
        """Return a token of a service account.

        * `bound`: The objects that the token is bound to, by claim: `pod`, `node` or `secret`.
        * `lifetime_s`: None for a token that does not expire.
        """
        namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
        issued_s = _unix_s(now)
        claims = {
            "aud": list(audiences),
            **({} if lifetime_s is None else {"exp": issued_s + lifetime_s}),
            "iat": issued_s,
            "iss": AUDIENCE,
            "jti": str(uuid.UUID(int=self._id_rng.getrandbits(128), version=4)),
            "kubernetes.io": {
                "namespace": namespace,
                **{kind: _object_reference(value) for kind, value in bound.items()},
                _ACCOUNT_CLAIM: _object_reference(account),
            },
            "nbf": issued_s,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        payload = ".".join(_base64url(msgspec.json.encode(part)) for part in (_HEADER, claims))
        return f"{payload}.{self._sign(payload)}"

    def authenticate_token(self, token: str, audiences: Sequence[str]) -> TokenIdentity | None:
        """Return the identity of a token, or None if we did not sign it; raises TokenRejected.

        The payload of a token that we signed is well-formed and is not checked.
        """
        payload, _, signature = token.rpartition(".")
        if not payload or not hmac.compare_digest(signature.encode(), self._sign(payload).encode()):
            return None
        text = payload.partition(".")[2]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        shared = [audience for audience in claims["aud"] if audience in audiences]
        if not shared:
            own, targets = (" ".join(map(go_quote, names)) for names in (claims["aud"], audiences))
            raise TokenRejected(f"token audiences [{own}] is invalid for the target audiences [{targets}]")
        if not claims["nbf"] <= _unix_s(self._now()) < claims.get("exp", math.inf):
            raise TokenRejected("service account token has expired")
        return TokenIdentity(self._user_of_claims(claims), shared)

    def _sign(self, payload: str) -> str:
        return _base64url(hmac.new(self._key, payload.encode(), hashlib.sha256).digest())

    def _user_of_claims(self, claims: dict[str, Any]) -> User:
        """Return the user of verified claims; raises TokenRejected if an object that they name no longer exists."""
        # Kubernetes: pkg/serviceaccount/claims.go, Validate.
        bindings = claims["kubernetes.io"]
        namespace, account = bindings["namespace"], bindings[_ACCOUNT_CLAIM]
        self._check_reference(_ACCOUNT_CLAIM, SERVICE_ACCOUNTS, namespace, account)
        extra: dict[str, tuple[str, ...]] = {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)}
        for claim, kind, namespaced in _BOUND_OBJECT_CLAIMS:
            reference = bindings.get(claim)
            if reference is None:
                continue
            # The token of a pod names the pod's node for information only; it stays valid without the node.
            if claim != "node" or "pod" not in bindings:
                self._check_reference(claim, kind, namespace if namespaced else "", reference)
            if claim != "secret":
                extra[f"authentication.kubernetes.io/{claim}-name"] = (reference["name"],)
                if "uid" in reference:
                    extra[f"authentication.kubernetes.io/{claim}-uid"] = (reference["uid"],)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return authenticated_user(claims["sub"], account["uid"], groups, extra)

    def _check_reference(self, claim: str, kind: str, namespace: str, reference: dict[str, str]) -> None:
        """Raise TokenRejected unless the object exists with the same uid and its deletion is not overdue."""
        name, claimed, is_account = reference["name"], reference.get("uid"), claim == _ACCOUNT_CLAIM
        owner = self._store.get(kind, Key(f"{namespace}/{name}" if namespace else name))
        if owner is None:
            raise TokenRejected(f"{kind} {go_quote(name)} not found" if is_account else _INVALIDATED_MESSAGE)
        uid, deletion_time = owner["metadata"].get("uid"), owner["metadata"].get("deletionTimestamp")
        if uid != claimed:
            kind_text, reference_text = (
                ("service account", "") if is_account else (claim, f"service account {claim} ref ")
            )
            raise TokenRejected(f"{kind_text} UID ({uid}) does not match {reference_text}claim ({claimed})")
        if deletion_time is not None and self._now() > after(instant_of(deletion_time), _LEEWAY):
            raise TokenRejected(
                f"service account {namespace}/{name} has been deleted" if is_account else _INVALIDATED_MESSAGE
            )
