"""The cache of encoded objects that watches share."""

from __future__ import annotations

from batkube.api.verbs.storage.watches import EncodedObjectCache
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

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
    texts, early, late = EncodedObjectCache(), CountingEncoder("json"), CountingEncoder("json")
    bodies = [texts.encode_body(early, POD, version, NOW) for version in range(100)]

    assert [texts.encode_body(late, POD, version, NOW) for version in range(100)] == bodies
    assert (early.encoded, late.encoded) == (100, 0)


def test_different_forms_and_forms_without_identity_share_nothing() -> None:
    texts, other = EncodedObjectCache(), CountingEncoder("yaml")
    tables = [CountingEncoder(None), CountingEncoder(None)]
    for form in (CountingEncoder("json"), other, *tables):
        texts.encode_body(form, POD, 1, NOW)

    assert [other.encoded, *(table.encoded for table in tables)] == [1, 1, 1]


def test_the_two_objects_of_a_change_are_cached_separately() -> None:
    texts, form = EncodedObjectCache(), CountingEncoder("json")

    assert texts.encode_body(form, POD, 1, NOW) == b"Pod 1"
    assert texts.encode_body(form, {"kind": "Node"}, 1, NOW) == b"Node 1"


def test_the_cache_stays_below_its_limit() -> None:
    texts, form = EncodedObjectCache(limit=12), CountingEncoder("json")
    for version in (1, 2, 3):
        texts.encode_body(form, POD, version, NOW)

    texts.encode_body(form, POD, 3, NOW)
    assert form.encoded == 3
    texts.encode_body(form, POD, 1, NOW)
    assert form.encoded == 4
