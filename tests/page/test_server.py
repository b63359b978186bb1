"""The page's server: without the token nothing."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from batkube.kernel.errors import InputError
from batkube.page.server import HOST, PageServer


@pytest.fixture
def server() -> Iterator[PageServer]:
    resources = {
        "": lambda _: ("text/html; charset=utf-8", b"the page"),
        "deltas": lambda parameters: ("application/json", f"since {parameters.get('since')}".encode()),
    }
    with PageServer(resources) as one:
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


def test_nothing_can_be_written(server: PageServer) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert request(server, f"/{server.token}/", method)[0] == 501


def test_a_port_that_is_taken_is_an_input_error(server: PageServer) -> None:
    with pytest.raises(InputError, match="cannot listen on this address"):
        PageServer({}, server.server_port)
