"""Nobody makes up a token, whatever it knows of a run; and what is secret is written where its owner alone can read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from batkube.api.access.authenticator import AUDIENCE
from batkube.kernel.streams import Streams
from batkube.programs.program import ExternalProgram
from batkube.programs.startup.command_lines import ProgramFolder, command_line
from batkube.programs.startup.extenders import ExtenderProxy
from batkube.schedulers.named_programs import program_start
from clients.serving import served
from conformance.direct import Direct

#: The seed of every server that `Direct` makes; that of a run stands in its manifest, for everybody to read.
SEED = 1
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/secrets"
RBAC = "rbac.authorization.k8s.io"


def with_robot() -> Direct:
    """Return a server with a service account that may do everything."""
    server = Direct()
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}],
    }
    assert server.ask("POST", ACCOUNTS, account).status == 201
    assert server.ask("POST", f"/apis/{RBAC}/v1/clusterrolebindings", binding).status == 201
    return server


def issued(server: Direct) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = server.ask("POST", f"{ACCOUNTS}/robot/token", request).body["status"]["token"]
    assert isinstance(token, str)
    return token


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def claims_of(token: str) -> dict[str, Any]:
    text = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return claims


def forged(claims: dict[str, Any], key: bytes, header: dict[str, str] | None = None) -> str:
    head = header or {"alg": "HS256", "typ": "JWT"}
    payload = f"{encoded(msgspec.json.encode(head))}.{encoded(msgspec.json.encode(claims))}"
    return f"{payload}.{encoded(hmac.new(key, payload.encode(), hashlib.sha256).digest())}"


def keys_from_the_seed() -> Iterator[bytes]:
    """Yield what a server could have drawn from its seed, by any name that appears in the source."""
    for name in ("api tokens", "api identities", "api service accounts", "policy", "latencies", "arrivals"):
        yield Streams(SEED).named(name).randbytes(32)
    yield random.Random(SEED).randbytes(32)
    yield hashlib.sha256(f"{SEED}:api tokens".encode()).digest()


def test_the_forgery_below_is_a_good_token_but_for_its_key() -> None:
    server = with_robot()
    token = issued(server)

    header, claims, _ = token.split(".")
    assert forged(claims_of(token), b"").rpartition(".")[0] == f"{header}.{claims}"
    assert server.ask("GET", SECRETS, token=token).status == 200


def test_the_seed_does_not_lead_to_the_key() -> None:
    server = with_robot()
    claims = claims_of(issued(server))

    for key in keys_from_the_seed():
        assert server.ask("GET", SECRETS, token=forged(claims, key)).status == 401


def test_servers_of_one_seed_issue_the_same_claims_at_the_same_length_and_take_no_token_of_one_another() -> None:
    first, second = with_robot(), with_robot()
    token, other = issued(first), issued(second)

    assert claims_of(token) == claims_of(other)
    assert len(token) == len(other)
    assert first.ask("GET", SECRETS, token=other).status == 401
    assert second.ask("GET", SECRETS, token=token).status == 401


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS512", "RS256", ""])
def test_no_algorithm_does_without_the_key(algorithm: str) -> None:
    server = with_robot()
    claims = claims_of(issued(server))

    token = forged(claims, b"", {"alg": algorithm, "typ": "JWT"})
    for attempt in (token, token.rpartition(".")[0], token.rpartition(".")[0] + ".", token + "=", token + "."):
        assert server.ask("GET", SECRETS, token=attempt).status == 401


def test_a_token_that_was_changed_anywhere_is_nobodys() -> None:
    server = with_robot()
    token = issued(server)

    for place in range(0, len(token), 7):
        letter = "A" if token[place] != "A" else "B"
        assert server.ask("GET", SECRETS, token=token[:place] + letter + token[place + 1 :]).status == 401


def test_a_longer_life_or_another_name_cannot_be_written_into_a_token() -> None:
    server = with_robot()
    claims = claims_of(issued(server))
    account = {"name": "other", "uid": claims["kubernetes.io"]["serviceaccount"]["uid"]}
    signature = issued(server).rpartition(".")[2]

    for change in ({"exp": 2**40}, {"sub": "system:admin"}, {"kubernetes.io": {"serviceaccount": account}}):
        payload = forged({**claims, **change}, b"").rpartition(".")[0]
        assert server.ask("GET", SECRETS, token=f"{payload}.{signature}").status == 401


def test_a_token_for_somebody_else_is_not_taken_here() -> None:
    server = with_robot()
    spec = {"audiences": ["vault"]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    token = server.ask("POST", f"{ACCOUNTS}/robot/token", request).body["status"]["token"]

    assert server.ask("GET", SECRETS, token=token).status == 401
    assert AUDIENCE not in claims_of(token)["aud"]


def test_an_account_that_is_made_again_does_not_inherit_tokens() -> None:
    server = with_robot()
    token = issued(server)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}

    server.ask("DELETE", f"{ACCOUNTS}/robot")
    assert server.ask("GET", SECRETS, token=token).status == 401
    server.ask("POST", ACCOUNTS, account)
    assert server.ask("GET", SECRETS, token=token).status == 401


def test_an_expired_token_is_not_taken() -> None:
    server = with_robot()
    token = issued(server)

    server.timers.pass_time(3599)
    assert server.ask("GET", SECRETS, token=token).status == 200
    server.timers.pass_time(1)
    assert server.ask("GET", SECRETS, token=token).status == 401


def test_reviews_of_nonsense_say_that_it_is_nobodys() -> None:
    server = Direct()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    for token in (".", "..", "a.b.c", "é.ü", "\N{OLD ITALIC LETTER A}.x", "=" * 5000, "." * 5000):
        answer = server.ask("POST", path, {**review, "spec": {"token": token}})
        assert (answer.status, answer.body["status"]["error"]) == (201, "invalid bearer token")


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Have files made as openly as their makers allow."""
    before = os.umask(0)
    yield
    os.umask(before)


def others_can_read(folder: Path) -> list[str]:
    """Return the names of the files that somebody else can read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077)


@pytest.mark.usefixtures("no_umask")
def test_what_serve_writes_for_others_to_read_holds_no_secret(tmp_path: Path) -> None:
    with served(tmp_path / "out", "--bare", "--seed", "7") as server:
        open_files = others_can_read(tmp_path / "out")
        texts = [(tmp_path / "out" / name).read_text() for name in open_files]

        assert "manifest.json" in open_files
        assert "kubeconfig" not in open_files
        assert not [text for text in texts if server.token in text]
    assert others_can_read(tmp_path / "out") == ["fidelity.json", "manifest.json"]


@pytest.mark.usefixtures("no_umask")
def test_the_files_that_let_a_scheduler_in_are_for_its_owner_alone(tmp_path: Path) -> None:
    extender = {"urlPrefix": "http://127.0.0.1:1/x", "filterVerb": "filter"}
    start = program_start("kube-scheduler")
    scheduler = ExternalProgram("kube-scheduler", Path("/programs/it"), start, (), {"extenders": [extender]})

    folder = ProgramFolder(tmp_path, "/proc/self/fd/9")
    command = command_line(scheduler, folder, 4711, "the-secret", ExtenderProxy([extender["urlPrefix"]], 1))

    assert [path.name for path in tmp_path.iterdir() if "the-secret" in path.read_text()]
    assert others_can_read(tmp_path) == []
    # The command line of a process can be read by everybody.
    assert "the-secret" not in " ".join(command)
