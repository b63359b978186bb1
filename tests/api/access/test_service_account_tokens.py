"""Tokens of service accounts."""

from __future__ import annotations

import base64
import json

from tests.api.access.token_cluster import Cluster

from batkube.api.access.authenticator import AUDIENCE
from batkube.cluster.store import Key
from batkube.kernel.instants import Instant, rfc3339, seconds


def test_a_token_of_a_secret_is_valid_while_the_secret_exists() -> None:
    cluster = Cluster()
    account, secret = cluster.store.get("serviceaccounts", Key("d/sa")), {"metadata": {"name": "s", "uid": "u-s"}}
    assert account is not None
    cluster.store.create("secrets", [Key("d/s")], [secret], cluster.now)
    token = cluster.tokens.issue(account, {"secret": secret}, [AUDIENCE], None, cluster.now)

    cluster.now = Instant(cluster.now + seconds(100 * 365 * 86400))
    known = cluster.user(token)
    assert known is not None
    assert known.name == "system:serviceaccount:d:sa"

    cluster.store.delete("secrets", [Key("d/s")], cluster.now)
    assert cluster.user(token) is None


def test_a_service_account_is_authenticated_by_its_token() -> None:
    cluster = Cluster()

    user = cluster.authenticator.authenticate({"authorization": f"Bearer {cluster.token()}"})

    assert (user.name, user.uid) == ("system:serviceaccount:d:sa", "u-sa")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated")


def test_a_token_of_a_pod_names_the_pod_and_its_node() -> None:
    cluster = Cluster()

    token = cluster.token(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"})

    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["kubernetes.io"]["pod"] == {"name": "p", "uid": "u-p"}
    user = cluster.user(token)
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/node-name"] == ("n",)


def test_a_token_becomes_invalid_with_time_and_with_its_pod_and_account() -> None:
    cluster = Cluster()
    plain = cluster.token(expirationSeconds=600)
    bound = cluster.token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})

    cluster.store.delete("pods", [Key("d/p")], cluster.now)
    assert cluster.user(bound) is None
    assert cluster.user(plain) is not None
    cluster.now = Instant(seconds(600))
    assert cluster.user(plain) is None
    again = cluster.token()
    cluster.store.delete("serviceaccounts", [Key("d/sa")], cluster.now)
    assert cluster.user(again) is None


def test_a_finalizer_does_not_keep_the_tokens_of_a_deleted_object_valid() -> None:
    cluster = Cluster()
    token = cluster.token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    (pod,) = cluster.store.objects("pods", [Key("d/p")])
    going = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": rfc3339(cluster.now)}}

    cluster.store.replace("pods", [Key("d/p")], [going], cluster.now)

    assert cluster.user(token) is not None
    cluster.now = Instant(seconds(61))
    assert cluster.user(token) is None


def test_a_forged_or_foreign_token_is_unknown() -> None:
    cluster = Cluster()
    header, claims, _ = cluster.token().split(".")

    for token in ("", "x", "a.b.c", f"{header}.{claims}.", f"{header}.{claims}.AAAA", "é.é.é"):
        assert cluster.tokens.authenticate_token(token, [AUDIENCE]) is None
    assert cluster.user(cluster.token(audiences=["someone-else"])) is None
