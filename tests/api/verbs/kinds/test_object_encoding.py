"""Which responses can be tables, compared with a real server."""

from __future__ import annotations

from batkube.api.requests.messages import Request, Response
from conformance.direct import ADMIN, Direct

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_only_objects_can_be_returned_as_tables(direct: Direct) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    direct.ask("POST", PODS, pod)

    def status(path: str) -> int:
        answer = direct.api.handle(Request("GET", path, {}, {**ADMIN, "accept": TABLE}))
        assert isinstance(answer, Response)
        return answer.status

    assert [status(f"{PODS}/a{below}") for below in ("", "/status", "/resize", "/ephemeralcontainers")] == [
        200,
        200,
        406,
        406,
    ]
