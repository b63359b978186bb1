"""The page's server: without the token nothing."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from batkube.kernel.errors import InputError
from batkube.page.server import HOST, InvalidCommand, PageServer


@pytest.fixture
def server() -> Iterator[PageServer]:
    resources = {
        "": lambda _: ("text/html; charset=utf-8", b"the page"),
        "deltas": lambda parameters: ("application/json", f"since {parameters.get('since')}".encode()),
    }

    def echo(body: bytes) -> tuple[str, bytes]:
        if body == b"reject":
            raise InvalidCommand("it is not a command\r\nX: y")
        return "text/plain", b"did " + body

    with PageServer(resources, commands={"echo": echo}) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def request(server: PageServer, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=60)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content, dict(response.headers)


def test_the_page_and_its_deltas_are_below_the_token(server: PageServer) -> None:
    status, content, headers = request(server, f"/{server.token}/")

    assert (status, content) == (200, b"the page")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert request(server, f"/{server.token}/deltas?since=7")[1] == b"since 7"
    assert request(server, f"/{server.token}/", "HEAD")[:2] == (200, b"")
    assert server.url == f"http://127.0.0.1:{server.server_port}/{server.token}/"


def test_without_the_token_nothing_is_found(server: PageServer) -> None:
    wrong = "x" * len(server.token)
    paths = ["/", "/deltas", "/favicon.ico", f"/{wrong}/", f"/{server.token}x/", f"/{server.token[:-1]}/", "//", "/é"]

    for path in [*map(str, paths), f"/{server.token}/other", f"/{server.token}/../etc/passwd"]:
        status, content, _ = request(server, path.replace("é", "%C3%A9"))
        assert status == 404, path
        assert b"the page" not in content


def test_other_names_of_the_machine_are_rejected(server: PageServer) -> None:
    """A site elsewhere can let its name resolve to the loopback address."""
    assert request(server, f"/{server.token}/", Host=f"localhost:{server.server_port}")[0] == 404
    assert request(server, f"/{server.token}/", Host="attacker.example")[0] == 404


def post(server: PageServer, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=60)
    connection.request("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content


def test_only_commands_can_be_posted_and_only_with_the_token_in_a_header(server: PageServer) -> None:
    path = f"/{server.token}/echo"

    assert post(server, path, b"hello", Batkube_Token=server.token) == (200, b"did hello")
    assert post(server, path, b"hello")[0] == 403
    assert post(server, path, b"hello", Batkube_Token="x" * len(server.token))[0] == 403
    assert post(server, path, b"hello", Batkube_Token="\xe9")[0] == 403
    assert post(server, "/echo", b"hello", Batkube_Token=server.token)[0] == 404
    assert post(server, f"/{server.token}/", b"hello", Batkube_Token=server.token)[0] == 404
    assert post(server, path, b"hello", Batkube_Token=server.token, Host="attacker.example")[0] == 404
    assert request(server, path)[0] == 404
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert request(server, path, method)[0] == 501


def test_a_command_may_be_rejected_or_too_long(server: PageServer) -> None:
    path = f"/{server.token}/echo"

    assert post(server, path, b"reject", Batkube_Token=server.token) == (400, b"it is not a command\r\nX: y")
    assert post(server, path, b"", Batkube_Token=server.token, Content_Length=str(10**9))[0] == 413
    assert post(server, path, b"", Batkube_Token=server.token, Content_Length="-1")[0] == 413


def test_a_port_that_is_taken_is_an_input_error(server: PageServer) -> None:
    with pytest.raises(InputError, match="cannot listen on this address"):
        PageServer({}, server.server_port)
