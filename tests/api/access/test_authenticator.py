"""Authentication by tokens."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest

from batkube.api.access.authenticator import AUDIENCE, Authenticator, read_token_file
from batkube.api.access.service_account_tokens import ServiceAccountTokens
from batkube.api.access.token_requests import TokenRequestHandler
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import ANONYMOUS, User, authenticated_user
from batkube.cluster.store import Key, Store
from batkube.kernel.errors import InputError
from batkube.kernel.instants import START, Instant, rfc3339, seconds

ADMIN = authenticated_user("admin", "1", ("system:masters",))
ALICE = authenticated_user("alice", "2", ())


def test_a_token_identifies_its_user_who_is_also_in_system_authenticated() -> None:
    known = Authenticator({"admin-token": ADMIN, "alice-token": ALICE})

    assert known.authenticate({"authorization": "Bearer admin-token"}) is ADMIN
    assert known.authenticate({"authorization": "  bearer alice-token ignored"}) is ALICE
    assert ADMIN.groups == ("system:masters", "system:authenticated")
    assert ADMIN.is_master
    assert not ALICE.is_master


@pytest.mark.parametrize("header", [None, "", "Basic YTpi", "Bearer", "Bearer "])
def test_a_request_without_a_token_is_anonymous(header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}

    assert Authenticator({"t": ADMIN}).authenticate(headers) is ANONYMOUS


def test_an_invalid_token_is_rejected() -> None:
    with pytest.raises(Failure) as refusal:
        Authenticator({"t": ADMIN}).authenticate({"authorization": "Bearer wrong"})

    assert refusal.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_a_token_file_is_read_as_kube_apiserver_does(tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text('t1,admin,1,"system:masters,ops"\n\nt2,"a,b",2\n')

    users = read_token_file(path)

    assert users["t1"] == authenticated_user("admin", "1", ("system:masters", "ops"))
    assert users["t2"] == authenticated_user("a,b", "2", ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("t,alice", "line 1: a token needs at least 3 columns (token, user name, user uid), found 2"),
        ("t,a,1\n,b,2", "line 2: the token is empty"),
        ("t,a,1\nt,b,2", "line 2: the token is already used on an earlier line"),
        ('t,a,1,"x', "line 1: unexpected end of data"),
    ],
)
def test_a_malformed_token_file_names_the_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(text)

    with pytest.raises(InputError) as error:
        read_token_file(path)

    assert problem in str(error.value)


def test_a_missing_token_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the token file cannot be read"):
        read_token_file(tmp_path / "nope")


class Cluster:
    """A store with a service account and a pod, and a clock to set."""

    def __init__(self) -> None:
        self.now = START
        self.store = Store()
        account = {"metadata": {"name": "sa", "namespace": "d", "uid": "u-sa"}}
        pod = {
            "metadata": {"name": "p", "namespace": "d", "uid": "u-p"},
            "spec": {"serviceAccountName": "sa", "nodeName": "n"},
        }
        self.store.create("serviceaccounts", [Key("d/sa")], [account], self.now)
        self.store.create("pods", [Key("d/p")], [pod], self.now)
        self.tokens = ServiceAccountTokens(self.store, random.Random(1), lambda: self.now)
        self.requests = TokenRequestHandler(self.store, self.tokens)
        self.authenticator = Authenticator({}, self.tokens)

    def user(self, token: str) -> User | None:
        try:
            return self.authenticator.authenticate({"authorization": f"Bearer {token}"})
        except Failure:
            return None

    def token(self, **spec: object) -> str:
        answer = self.requests.issue({"spec": spec}, "d", "sa", self.now)
        token = answer["status"]["token"]
        assert isinstance(token, str)
        return token


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


def test_the_status_of_a_token_request_is_set() -> None:
    cluster = Cluster()

    answer = cluster.requests.issue({"kind": "TokenRequest"}, "d", "sa", cluster.now)

    assert answer["metadata"] == {
        "name": "sa",
        "namespace": "d",
        "uid": "u-sa",
        "creationTimestamp": "2000-01-01T00:00:00Z",
    }
    assert answer["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answer["status"]["expirationTimestamp"] == "2000-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("request_", "name", "code", "message"),
    [
        (
            {"spec": {"expirationSeconds": 5}},
            "sa",
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: may not '
            "specify a duration less than 10 minutes",
        ),
        ({}, "nope", 404, 'serviceaccounts "nope" not found'),
        (
            {"metadata": {"name": "other"}},
            "sa",
            422,
            'TokenRequest.authentication.k8s.io "sa" is invalid: metadata.name: Invalid value: "other": must match the '
            "service account name if specified",
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1"}}},
            "sa",
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "x"}}},
            "sa",
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (x) does not match the '
            "UID in record. The object might have been deleted and then recreated",
        ),
    ],
)
def test_an_invalid_token_request_is_rejected(request_: dict[str, object], name: str, code: int, message: str) -> None:
    cluster = Cluster()

    with pytest.raises(Failure) as refusal:
        cluster.requests.issue(request_, "d", name, cluster.now)

    assert (refusal.value.code, refusal.value.message) == (code, message)
