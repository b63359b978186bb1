"""What watches share of what was encoded."""

from __future__ import annotations

from batkube.api.verbs.storage.watches import EncodedObjectCache
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

NOW = Instant(0)
POD: KubeObject = {"kind": "Pod"}


class CountingForm:
    """Counts how often it encodes."""

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


def test_readers_of_equal_form_share_a_text_however_much_later_they_are_told() -> None:
    texts, early, late = EncodedObjectCache(), CountingForm("json"), CountingForm("json")
    told = [texts.encode_body(early, POD, version, NOW) for version in range(100)]

    assert [texts.encode_body(late, POD, version, NOW) for version in range(100)] == told
    assert (early.encoded, late.encoded) == (100, 0)


def test_other_forms_and_forms_that_are_never_alike_share_nothing() -> None:
    texts, other = EncodedObjectCache(), CountingForm("yaml")
    tables = [CountingForm(None), CountingForm(None)]
    for form in (CountingForm("json"), other, *tables):
        texts.encode_body(form, POD, 1, NOW)

    assert [other.encoded, *(table.encoded for table in tables)] == [1, 1, 1]


def test_of_two_objects_of_one_change_each_has_its_own_text() -> None:
    texts, form = EncodedObjectCache(), CountingForm("json")

    assert texts.encode_body(form, POD, 1, NOW) == b"Pod 1"
    assert texts.encode_body(form, {"kind": "Node"}, 1, NOW) == b"Node 1"


def test_no_more_is_kept_than_there_is_room_for() -> None:
    texts, form = EncodedObjectCache(limit=12), CountingForm("json")
    for version in (1, 2, 3):
        texts.encode_body(form, POD, version, NOW)

    texts.encode_body(form, POD, 3, NOW)
    assert form.encoded == 3
    texts.encode_body(form, POD, 1, NOW)
    assert form.encoded == 4
