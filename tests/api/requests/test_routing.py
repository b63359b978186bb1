"""Paths and their methods, compared with a real server."""

from __future__ import annotations

import pytest

from batkube.api.requests.messages import Request, Response
from conformance.direct import ADMIN, Direct

PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", PODS, 405),
        ("POST", f"{PODS}/a", 405),
        ("HEAD", PODS, 405),
        ("OPTIONS", f"{PODS}/a", 405),
        ("POST", "/api/v1/pods", 405),
        ("DELETE", f"{PODS}/a/log", 405),
        ("POST", "/version", 405),
        ("POST", "/apis/apps/v1", 405),
        ("GET", "/api/v1/namespaces/default/bindings/a", 404),
        ("POST", "/api/v1/bindings", 404),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews/a", 404),
        ("GET", f"{PODS}/..", 400),
        ("DELETE", "/api/v1/namespaces//pods", 400),
        ("GET", "//api/v1", 404),
        ("POST", "/healthz", 200),
    ],
)
def test_a_path_has_its_methods_and_no_others(direct: Direct, method: str, path: str, status: int) -> None:
    answer = direct.api.handle(Request(method, path, {}, ADMIN))

    assert isinstance(answer, Response)
    assert answer.status == status
