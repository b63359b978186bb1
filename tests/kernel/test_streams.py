"""Named streams of random numbers."""

from __future__ import annotations

from batkube.kernel.streams import Streams


def test_a_stream_depends_on_the_seed_and_its_name_alone() -> None:
    alone, among_others = Streams(7), Streams(7)
    for name in ("arrivals", "sizes"):
        among_others.named(name).random()

    drawn = [alone.named("policy").random() for _ in range(3)]

    assert drawn == [among_others.named("policy").random() for _ in range(3)]
    assert drawn != [Streams(8).named("policy").random() for _ in range(3)]
    assert drawn != [Streams(7).named("latency/pull").random() for _ in range(3)]
