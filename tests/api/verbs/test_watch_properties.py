"""A client that lists and then watches has the state of the cluster, despite lost connections and compactions."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.direct import MERGE, Answer, Direct, Watched

NAMESPACES = ("one", "two")
NAMES = ("a", "b", "c")
SELECTIONS: tuple[dict[str, str], ...] = (
    {},
    {"labelSelector": "tier=front"},
    {"labelSelector": "tier!=front"},
    {"labelSelector": "tier in (front,back),!hidden"},
    {"fieldSelector": "spec.nodeName="},
    {"fieldSelector": "status.phase=Running"},
    {"fieldSelector": "metadata.name=b", "labelSelector": "tier"},
)
PATHS = ("/api/v1/pods", *(f"/api/v1/namespaces/{namespace}/pods" for namespace in NAMESPACES))

places = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
labels = st.dictionaries(
    st.sampled_from(["tier", "hidden"]), st.sampled_from(["front", "back", None]), min_size=1, max_size=2
)
actions = st.one_of(
    st.tuples(st.just("create"), places, labels),
    st.tuples(st.just("label"), places, labels),
    st.tuples(st.just("bind"), places, st.just({})),
    st.tuples(st.just("phase"), places, st.sampled_from([{"phase": "Running"}, {"phase": "Succeeded"}])),
    st.tuples(st.just("delete"), places, st.sampled_from([{"gracePeriodSeconds": "0"}, {}])),
    st.tuples(
        st.just("watch"), st.tuples(st.sampled_from(PATHS), st.sampled_from(range(len(SELECTIONS)))), st.just({})
    ),
    st.tuples(st.just("slow"), st.tuples(st.integers(0, 5), st.booleans()), st.just({})),
    st.tuples(st.just("reconnect"), st.tuples(st.integers(0, 5), st.booleans()), st.just({})),
    st.tuples(st.just("wait"), st.tuples(st.sampled_from([1, 61, 3000]), st.just(0)), st.just({})),
    st.tuples(st.just("compact"), st.just(("", "")), st.just({})),
)


class Informer:
    """A client like client-go's reflector: it lists, watches from that version, and lists again after 410."""

    def __init__(self, direct: Direct, path: str, selection: dict[str, str]) -> None:
        self._direct = direct
        self._path = path
        self._selection = selection
        self.is_slow = False
        self._relist()

    def _relist(self) -> None:
        listed = self._direct.ask("GET", self._path, query=self._selection)
        assert listed.status == 200
        self.state = {_key(item): item for item in listed.body["items"]}
        self._version = listed.body["metadata"]["resourceVersion"]
        self._watch()

    def _watch(self) -> None:
        query = {**self._selection, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        watched = self._direct.watch(self._path, query)
        if isinstance(watched, Answer):
            assert watched.status == 410
            self._relist()
            return
        self._watched: Watched = watched
        self._watched.reader.writable = not self.is_slow

    def set_slow(self, is_slow: bool) -> None:
        """Stop or resume reading."""
        self.is_slow = is_slow
        self._watched.reader.writable = not is_slow
        if not is_slow:
            self._watched.resume()

    def reconnect(self, *, late: bool) -> None:
        """Lose the connection, possibly with unread events, and watch again from the last event that was read."""
        if not late:
            self.catch_up()
        self._watched.stop()
        self._watch()

    def catch_up(self) -> None:
        """Read all available events; after the end of a watch, start another."""
        while True:
            reader = self._watched.reader
            events, reader.events = reader.events, []
            for event in events:
                if event["type"] == "ERROR":
                    assert event["object"]["code"] == 410
                    self._relist()
                    break
                self._take(event)
            else:
                if reader.is_closed:
                    self._watch()
                    continue
                return

    def _take(self, event: dict[str, Any]) -> None:
        found = event["object"]
        version = found["metadata"]["resourceVersion"]
        assert int(version) >= int(self._version), "versions never go back"
        self._version = version
        if event["type"] == "BOOKMARK":
            return
        key = _key(found)
        assert (key in self.state) == (event["type"] != "ADDED"), (event["type"], key)
        if event["type"] == "DELETED":
            del self.state[key]
        else:
            self.state[key] = found

    def check(self) -> None:
        """Compare the state of this client with a list of the server."""
        self.set_slow(False)
        self.catch_up()
        listed = self._direct.ask("GET", self._path, query=self._selection)
        assert self.state == {_key(item): item for item in listed.body["items"]}


def _key(item: dict[str, Any]) -> tuple[str, str]:
    item.pop("apiVersion", None)  # items of a list come without their kind
    item.pop("kind", None)
    return item["metadata"]["namespace"], item["metadata"]["name"]


def write(direct: Direct, action: str, place: tuple[str, str], detail: dict[str, Any]) -> None:
    """Write something; ignore NotFound and AlreadyExists."""
    namespace, name = place
    collection = f"/api/v1/namespaces/{namespace}/pods"
    if action == "create":
        kept = {key: value for key, value in detail.items() if value is not None}
        pod = {"metadata": {"name": name, "labels": kept}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        answer = direct.ask("POST", collection, {"apiVersion": "v1", "kind": "Pod", **pod})
    elif action == "label":
        answer = direct.ask("PATCH", f"{collection}/{name}", {"metadata": {"labels": detail}}, content_type=MERGE)
    elif action == "bind":
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        answer = direct.ask(
            "POST", f"{collection}/{name}/binding", {**binding, "target": {"kind": "Node", "name": "n"}}
        )
    elif action == "phase":
        answer = direct.ask("PATCH", f"{collection}/{name}/status", {"status": detail}, content_type=MERGE)
    else:
        answer = direct.ask("DELETE", f"{collection}/{name}", query=detail)
    assert answer.status in (200, 201, 404, 409), answer


@settings(max_examples=60)
@given(st.lists(actions, max_size=60))
def test_a_client_that_lists_and_watches_has_the_state_of_the_server(script: list[tuple[str, Any, Any]]) -> None:
    direct = Direct(history_limit=25)
    for namespace in NAMESPACES:
        direct.ask("POST", "/api/v1/namespaces", _namespace(namespace))
    informers = [Informer(direct, PATHS[0], SELECTIONS[0])]

    for action, place, detail in script:
        if action == "watch":
            informers.append(Informer(direct, place[0], SELECTIONS[place[1]]))
        elif action == "slow":
            informers[place[0] % len(informers)].set_slow(place[1])
        elif action == "reconnect":
            informers[place[0] % len(informers)].reconnect(late=place[1])
        elif action == "wait":
            direct.timers.pass_time(place[0])
        elif action == "compact":
            direct.store.compact()
        else:
            write(direct, action, place, detail)

    for informer in informers:
        informer.check()


@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(actions.filter(lambda action: action[0] in ("create", "label", "phase", "delete")), max_size=30))
def test_a_watch_from_any_version_ends_at_the_current_state(script: list[tuple[str, Any, Any]]) -> None:
    direct = Direct()
    for namespace in NAMESPACES:
        direct.ask("POST", "/api/v1/namespaces", _namespace(namespace))
    states = []
    for action, place, detail in script:
        listed = direct.ask("GET", PATHS[0])
        states.append((listed.body["metadata"]["resourceVersion"], listed.body["items"]))
        write(direct, action, place, detail)
    present = {_key(item): item for item in direct.ask("GET", PATHS[0]).body["items"]}

    for version, items in states:
        rebuilt = {_key(item): item for item in items}
        watched = direct.watch(PATHS[0], {"resourceVersion": version})
        assert isinstance(watched, Watched)
        for event in watched.reader.events:
            key = _key(event["object"])
            if event["type"] == "DELETED":
                del rebuilt[key]
            else:
                rebuilt[key] = event["object"]
        watched.stop()

        assert rebuilt == present


def test_a_watch_that_is_stopped_leaves_nothing_behind() -> None:
    direct = Direct()
    for _ in range(50):
        watched = direct.watch("/api/v1/pods")
        assert isinstance(watched, Watched)
        watched.stop()

    assert direct.api.watches.count() == 0


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
