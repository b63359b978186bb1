"""Which requests there are at all, and how lists are cut: answers compared with those of a real server by hand."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.api.requests.messages import Request, Response
from batkube.api.verbs.storage import registry
from conformance.direct import ADMIN, MERGE, Answer, Direct, Watched

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def direct() -> Direct:
    server = Direct()
    server.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return server


def config_map(name: str, **metadata: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


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


def test_only_objects_come_as_tables(direct: Direct) -> None:
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


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_the_next_page_may_be_empty_where_objects_are_chosen(direct: Direct) -> None:
    """The real server sees that there are more keys, not whether any of them is chosen."""
    for name, color in (("a", "red"), ("b", "blue")):
        direct.ask("POST", CONFIG_MAPS, config_map(name, labels={"color": color}))

    first = direct.ask("GET", CONFIG_MAPS, query={"limit": "1", "labelSelector": "color=red"})
    rest = {"limit": "1", "labelSelector": "color=red", "continue": first.body["metadata"]["continue"]}

    assert names(first) == ["a"]
    assert names(direct.ask("GET", CONFIG_MAPS, query=rest)) == []


def test_a_limit_counts_for_lists_not_older_than_a_version(direct: Direct) -> None:
    for name in "abc":
        direct.ask("POST", CONFIG_MAPS, config_map(name))
    query = {"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan", "limit": "2"}

    assert names(direct.ask("GET", CONFIG_MAPS, query=query)) == ["a", "b"]


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("%%%", "illegal base64 data at input byte 0"),
        ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiIn0", "encoded start key empty (version meta.k8s.io/v1)"),
        ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vYyJ9", "../c"),
    ],
)
def test_a_token_that_was_made_up_is_refused(direct: Direct, token: str, problem: str) -> None:
    answer = direct.ask("GET", CONFIG_MAPS, query={"continue": token})

    assert answer.status == 400
    assert answer.body["message"] == f"invalid continue token: continue key is not valid: {problem}"


def test_a_watch_from_any_version_says_when_it_has_told_what_there_is(direct: Direct) -> None:
    direct.ask("POST", CONFIG_MAPS, config_map("a"))
    watch = direct.watch(CONFIG_MAPS, {"allowWatchBookmarks": "true"})
    assert isinstance(watch, Watched)

    added, mark = watch.reader.events
    assert (added["type"], mark["type"]) == ("ADDED", "BOOKMARK")
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_an_owner_is_an_owner_once(direct: Direct) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
    created = direct.ask("POST", CONFIG_MAPS, config_map("a", ownerReferences=[owner, owner]))
    patch = {"metadata": {"ownerReferences": [owner, {**owner, "name": "y"}, owner]}}
    patched = direct.ask("PATCH", f"{CONFIG_MAPS}/a", patch, content_type=MERGE)

    assert created.body["metadata"]["ownerReferences"] == [owner]
    assert patched.body["metadata"]["ownerReferences"] == [owner, {**owner, "name": "y"}]


def test_a_deletion_heeds_preconditions_of_the_query(direct: Direct) -> None:
    direct.ask("POST", CONFIG_MAPS, config_map("a"))

    assert direct.ask("DELETE", f"{CONFIG_MAPS}/a", query={"uid": "another"}).status == 409
    assert direct.ask("DELETE", f"{CONFIG_MAPS}/a", query={"resourceVersion": "1"}).status == 409
    assert direct.ask("DELETE", f"{CONFIG_MAPS}/a").status == 200


def test_a_name_that_is_given_and_taken_could_have_been_generated(direct: Direct) -> None:
    direct.ask("POST", CONFIG_MAPS, config_map("a"))
    answer = direct.ask("POST", CONFIG_MAPS, config_map("a", generateName="a-"))

    assert answer.status == 409
    assert answer.body["details"]["retryAfterSeconds"] == 1


def test_a_generated_name_that_is_taken_is_drawn_anew_but_not_for_ever(
    direct: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = {"metadata": {"generateName": "a-"}}
    monkeypatch.setattr(registry, "_NAME_LETTERS", "bc")  # which make 32 names
    names = [direct.ask("POST", CONFIG_MAPS, generated).body["metadata"]["name"] for _ in range(16)]
    monkeypatch.setattr(registry, "_NAME_LETTERS", names[0][-1])
    taken = [direct.ask("POST", CONFIG_MAPS, generated).status for _ in range(2)]

    assert len(set(names)) == 16
    assert taken[-1] == 409
