"""Tokens of service accounts: issued on request, recognised afterwards.

A token is a JSON Web Token with the claims that kube-apiserver writes (pkg/serviceaccount/claims.go). It is accepted
until it expires, as long as the service account, and the object to which it may be bound, exist with the same uid.

The key that signs tokens is drawn anew at every start from the system's own randomness and never leaves the process.
Nothing that a run repeats from its seed may depend on it: a token has the same length whatever the key is.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import secrets
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from batkube.api.authentication import AUDIENCE, User, authenticated
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import EPOCH, NANOSECONDS_PER_SECOND, Duration, Instant, after, instant_of

ACCOUNTS = "serviceaccounts"
_HEADER = {"alg": "HS256", "typ": "JWT"}
_EPOCH_S = int(EPOCH.timestamp())
_KEY_BYTES = 32
#: How long a token outlives the time at which an object it depends on was to be gone (go-jose: jwt.DefaultLeeway).
_LEEWAY = Duration(60 * NANOSECONDS_PER_SECOND)
#: Objects that a token can be bound to: the claim, its kind in the store, and whether it lies in the namespace.
_BOUND = (("pod", "pods", True), ("secret", "secrets", True), ("node", "nodes", False))


def _unix_s(now: Instant) -> int:
    return _EPOCH_S + now // NANOSECONDS_PER_SECOND


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _reference(value: KubeObject) -> dict[str, str]:
    metadata = value["metadata"]
    return {key: metadata[key] for key in ("name", "uid") if metadata.get(key)}


class ServiceAccountTokens:
    """Issues tokens and tells whose they are."""

    def __init__(self, store: Store, identities: random.Random, now: Callable[[], Instant]) -> None:
        """`identities` draws the ids of tokens, which are no secrets: the key is, and comes from nowhere else."""
        self._store = store
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._identities = identities
        self._now = now

    def issue(
        self,
        account: KubeObject,
        bound: dict[str, KubeObject],
        audiences: Sequence[str],
        lifetime_s: int,
        now: Instant,
    ) -> str:
        """Return a token of a service account, bound to the `pod`, `node` or `secret` that is given, if any."""
        namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
        issued_s = _unix_s(now)
        claims = {
            "aud": list(audiences),
            "exp": issued_s + lifetime_s,
            "iat": issued_s,
            "iss": AUDIENCE,
            "jti": str(uuid.UUID(int=self._identities.getrandbits(128), version=4)),
            "kubernetes.io": {
                "namespace": namespace,
                **{kind: _reference(value) for kind, value in bound.items()},
                "serviceaccount": _reference(account),
            },
            "nbf": issued_s,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        payload = ".".join(_encoded(msgspec.json.encode(part)) for part in (_HEADER, claims))
        return f"{payload}.{self._signature(payload)}"

    def user(self, token: str) -> User | None:
        """Return the service account whose token it is, or None. What our signature is under needs no other check."""
        payload, _, signature = token.rpartition(".")
        if not payload or not hmac.compare_digest(signature.encode(), self._signature(payload).encode()):
            return None
        text = payload.partition(".")[2]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if not claims["nbf"] <= _unix_s(self._now()) < claims["exp"] or AUDIENCE not in claims["aud"]:
            return None
        return self._known(claims)

    def _signature(self, payload: str) -> str:
        return _encoded(hmac.new(self._key, payload.encode(), hashlib.sha256).digest())

    def _known(self, claims: dict[str, Any]) -> User | None:
        """Return the user of claims that are ours, if the objects they name are still there."""
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        if not self._exists(ACCOUNTS, namespace, account):
            return None
        extra: dict[str, tuple[str, ...]] = {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)}
        for claim, kind, namespaced in _BOUND:
            reference = about.get(claim)
            if reference is None:
                continue
            # A pod's token names the node as a matter of fact; only a token of a node depends on it.
            depends = claim != "node" or "pod" not in about
            if depends and not self._exists(kind, namespace if namespaced else "", reference):
                return None
            if claim != "secret":
                extra[f"authentication.kubernetes.io/{claim}-name"] = (reference["name"],)
                if "uid" in reference:
                    extra[f"authentication.kubernetes.io/{claim}-uid"] = (reference["uid"],)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return authenticated(claims["sub"], account["uid"], groups, extra)

    def _exists(self, kind: str, namespace: str, reference: dict[str, str]) -> bool:
        """Return whether the very object is still there, and not only because a finalizer holds it back."""
        name = reference["name"]
        found = self._store.get(kind, Key(f"{namespace}/{name}" if namespace else name))
        if found is None or found["metadata"].get("uid") != reference.get("uid"):
            return False
        going = found["metadata"].get("deletionTimestamp")
        return going is None or self._now() <= after(instant_of(going), _LEEWAY)
