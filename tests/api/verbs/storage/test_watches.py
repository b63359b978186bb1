"""Watches, and the cache of encoded objects that they share."""

from __future__ import annotations

from tests.api.verbs.storage.config_maps import CONFIG_MAPS, config_map

from batkube.api.verbs.storage.watches import EncodedEventCache
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant
from conformance.direct import Direct, Watched


def test_a_watch_from_any_version_marks_the_end_of_initial_events(direct: Direct) -> None:
    direct.ask("POST", CONFIG_MAPS, config_map("a"))
    watch = direct.watch(CONFIG_MAPS, {"allowWatchBookmarks": "true"})
    assert isinstance(watch, Watched)

    added, mark = watch.reader.events
    assert (added["type"], mark["type"]) == ("ADDED", "BOOKMARK")
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


NOW = Instant(0)
POD: KubeObject = {"kind": "Pod"}


class CountingEncoder:
    """An event encoder that counts its calls."""

    content_type = "application/json"

    def __init__(self, identity: object) -> None:
        self.identity = identity
        self.encoded = 0

    def encode_body(self, value: KubeObject, version: int, now: Instant) -> bytes:
        self.encoded += 1
        return f"{value['kind']} {version}".encode()

    def wrap_event(self, kind: str, body: bytes) -> bytes:
        return body

    def bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        return b""

    def error(self, message: str) -> bytes:
        return b""


def test_watches_of_equal_form_share_encoded_objects_even_if_some_are_behind() -> None:
    texts, early, late = EncodedEventCache(), CountingEncoder("json"), CountingEncoder("json")
    bodies = [texts.encode(early, ("ADDED", POD), version, NOW) for version in range(100)]

    assert [texts.encode(late, ("ADDED", POD), version, NOW) for version in range(100)] == bodies
    assert (early.encoded, late.encoded) == (100, 0)


def test_different_forms_and_forms_without_identity_share_nothing() -> None:
    texts, other = EncodedEventCache(), CountingEncoder("yaml")
    tables = [CountingEncoder(None), CountingEncoder(None)]
    for form in (CountingEncoder("json"), other, *tables):
        texts.encode(form, ("ADDED", POD), 1, NOW)

    assert [other.encoded, *(table.encoded for table in tables)] == [1, 1, 1]


def test_the_two_objects_of_a_change_are_cached_separately() -> None:
    texts, form = EncodedEventCache(), CountingEncoder("json")

    assert texts.encode(form, ("ADDED", POD), 1, NOW) == b"Pod 1"
    assert texts.encode(form, ("ADDED", {"kind": "Node"}), 1, NOW) == b"Node 1"


def test_the_cache_stays_below_its_limit() -> None:
    texts, form = EncodedEventCache(limit=12), CountingEncoder("json")
    for version in (1, 2, 3):
        texts.encode(form, ("ADDED", POD), version, NOW)

    texts.encode(form, ("ADDED", POD), 3, NOW)
    assert form.encoded == 3
    texts.encode(form, ("ADDED", POD), 1, NOW)
    assert form.encoded == 4
