"""Tokens cannot be forged, and secrets are written only to files that their owner alone can read."""

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

#: The seed of every server that `Direct` makes; the seed of a run is in its manifest, which everybody can read.
SEED = 1
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/secrets"
RBAC = "rbac.authorization.k8s.io"


def with_robot() -> Direct:
    """Return a server with a service account that has all permissions."""
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
    """Yield keys that a server could have derived from its seed, by the stream names in the source."""
    for name in ("api tokens", "api identities", "api service accounts", "policy", "latencies", "arrivals"):
        yield Streams(SEED).named(name).randbytes(32)
    yield random.Random(SEED).randbytes(32)
    yield hashlib.sha256(f"{SEED}:api tokens".encode()).digest()


def test_the_forged_tokens_of_these_tests_are_valid_except_for_their_key() -> None:
    server = with_robot()
    token = issued(server)

    header, claims, _ = token.split(".")
    assert forged(claims_of(token), b"").rpartition(".")[0] == f"{header}.{claims}"
    assert server.ask("GET", SECRETS, token=token).status == 200


def test_the_key_cannot_be_derived_from_the_seed() -> None:
    server = with_robot()
    claims = claims_of(issued(server))

    for key in keys_from_the_seed():
        assert server.ask("GET", SECRETS, token=forged(claims, key)).status == 401


def test_servers_of_one_seed_issue_equal_claims_and_reject_tokens_of_each_other() -> None:
    first, second = with_robot(), with_robot()
    token, other = issued(first), issued(second)

    assert claims_of(token) == claims_of(other)
    assert len(token) == len(other)
    assert first.ask("GET", SECRETS, token=other).status == 401
    assert second.ask("GET", SECRETS, token=token).status == 401


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS512", "RS256", ""])
def test_every_algorithm_requires_the_key(algorithm: str) -> None:
    server = with_robot()
    claims = claims_of(issued(server))

    token = forged(claims, b"", {"alg": algorithm, "typ": "JWT"})
    for attempt in (token, token.rpartition(".")[0], token.rpartition(".")[0] + ".", token + "=", token + "."):
        assert server.ask("GET", SECRETS, token=attempt).status == 401


def test_a_token_modified_anywhere_is_rejected() -> None:
    server = with_robot()
    token = issued(server)

    for place in range(0, len(token), 7):
        letter = "A" if token[place] != "A" else "B"
        assert server.ask("GET", SECRETS, token=token[:place] + letter + token[place + 1 :]).status == 401


def test_a_token_with_modified_claims_is_rejected() -> None:
    server = with_robot()
    claims = claims_of(issued(server))
    account = {"name": "other", "uid": claims["kubernetes.io"]["serviceaccount"]["uid"]}
    signature = issued(server).rpartition(".")[2]

    for change in ({"exp": 2**40}, {"sub": "system:admin"}, {"kubernetes.io": {"serviceaccount": account}}):
        payload = forged({**claims, **change}, b"").rpartition(".")[0]
        assert server.ask("GET", SECRETS, token=f"{payload}.{signature}").status == 401


def test_a_token_for_another_audience_is_rejected() -> None:
    server = with_robot()
    spec = {"audiences": ["vault"]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    token = server.ask("POST", f"{ACCOUNTS}/robot/token", request).body["status"]["token"]

    assert server.ask("GET", SECRETS, token=token).status == 401
    assert AUDIENCE not in claims_of(token)["aud"]


def test_a_recreated_account_does_not_inherit_tokens() -> None:
    server = with_robot()
    token = issued(server)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}

    server.ask("DELETE", f"{ACCOUNTS}/robot")
    assert server.ask("GET", SECRETS, token=token).status == 401
    server.ask("POST", ACCOUNTS, account)
    assert server.ask("GET", SECRETS, token=token).status == 401


def test_an_expired_token_is_rejected() -> None:
    server = with_robot()
    token = issued(server)

    server.timers.pass_time(3599)
    assert server.ask("GET", SECRETS, token=token).status == 200
    server.timers.pass_time(1)
    assert server.ask("GET", SECRETS, token=token).status == 401


def test_token_reviews_reject_malformed_tokens() -> None:
    server = Direct()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    for token in (".", "..", "a.b.c", "é.ü", "\N{OLD ITALIC LETTER A}.x", "=" * 5000, "." * 5000):
        answer = server.ask("POST", path, {**review, "spec": {"token": token}})
        assert (answer.status, answer.body["status"]["error"]) == (201, "invalid bearer token")


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Create files with the permissions that their creators request."""
    before = os.umask(0)
    yield
    os.umask(before)


def others_can_read(folder: Path) -> list[str]:
    """Return the names of the files that other users can read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077)


@pytest.mark.usefixtures("no_umask")
def test_readable_files_of_serve_contain_no_secret(tmp_path: Path) -> None:
    with served(tmp_path / "out", "--bare", "--seed", "7") as server:
        open_files = others_can_read(tmp_path / "out")
        texts = [(tmp_path / "out" / name).read_text() for name in open_files]

        assert "manifest.json" in open_files
        assert "kubeconfig" not in open_files
        assert not [text for text in texts if server.token in text]
    assert others_can_read(tmp_path / "out") == ["fidelity.json", "manifest.json", "nodes.csv"]


@pytest.mark.usefixtures("no_umask")
def test_the_credentials_of_a_scheduler_are_in_private_files(tmp_path: Path) -> None:
    extender = {"urlPrefix": "http://127.0.0.1:1/x", "filterVerb": "filter"}
    start = program_start("kube-scheduler")
    scheduler = ExternalProgram("kube-scheduler", Path("/programs/it"), start, (), {"extenders": [extender]})

    folder = ProgramFolder(tmp_path, "/proc/self/fd/9")
    command = command_line(scheduler, folder, 4711, "the-secret", ExtenderProxy([extender["urlPrefix"]], 1))

    assert [path.name for path in tmp_path.iterdir() if "the-secret" in path.read_text()]
    assert others_can_read(tmp_path) == []
    # The command line of a process can be read by everybody.
    assert "the-secret" not in " ".join(command)
