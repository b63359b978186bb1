"""Authentication by tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.api.access.authenticator import Authenticator, read_token_file
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import ANONYMOUS, authenticated_user
from batkube.kernel.errors import InputError

ADMIN = authenticated_user("admin", "1", ("system:masters",))
ALICE = authenticated_user("alice", "2", ())


def test_a_token_identifies_its_user_in_the_group_system_authenticated() -> None:
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
