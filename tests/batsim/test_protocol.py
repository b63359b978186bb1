"""The words of Batsim's protocol: written as Batsim writes them, and read back as what they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.batsim.protocol.decoder import MalformedMessage, decode
from batkube.batsim.protocol.encoder import encode
from batkube.batsim.protocol.messages import (
    CallMeLater,
    Event,
    ExecuteJob,
    JobCompleted,
    KillJob,
    Message,
    RejectJob,
    RequestedCall,
    SetResourceState,
)
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, Sleep
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.kernel.instants import Duration, Instant

#: Dates have six decimals on the wire.
DATES = st.integers(0, 10**12).map(lambda micros: Instant(micros * 1000))
MACHINES = st.integers(1, 2**40)
IDS = st.from_regex(r"w[0-9]![a-z0-9]{1,8}", fullmatch=True)
EVENTS = st.one_of(
    st.builds(RequestedCall, at=DATES),
    st.builds(CallMeLater, at=DATES, call_at=DATES),
    st.builds(RejectJob, at=DATES, job_id=IDS),
    st.builds(KillJob, at=DATES, job_ids=st.lists(IDS, min_size=1)),
    st.builds(ExecuteJob, at=DATES, job_id=IDS, machines=MACHINES),
    st.builds(SetResourceState, at=DATES, machines=MACHINES, state=st.integers(0, 9)),
    st.builds(
        JobCompleted,
        at=DATES,
        job_id=IDS,
        state=st.just("COMPLETED_FAILED"),
        return_code=st.integers(-2, 255),
        machines=MACHINES,
    ),
)


@given(DATES, st.lists(EVENTS))
def test_what_is_written_is_read_as_what_it_was(now: Instant, events: list[Event]) -> None:
    assert decode(encode(Message(now, events))) == Message(now, events)


def test_a_message_looks_as_batsims_do() -> None:
    event = JobCompleted(
        at=Instant(10_500_000_000), job_id="w0!1", state="COMPLETED_SUCCESSFULLY", return_code=0, machines=0b101111
    )

    assert encode(Message(Instant(11 * 10**9), [event])) == (
        '{"now":11.000000,"events":[{"timestamp":10.500000,"type":"JOB_COMPLETED","data":'
        '{"job_id":"w0!1","job_state":"COMPLETED_SUCCESSFULLY","return_code":0,"alloc":"0-3 5"}}]}'
    )


@given(st.text() | st.binary())
def test_nonsense_is_told_and_breaks_nothing(text: str | bytes) -> None:
    with pytest.raises(MalformedMessage, match=r"^Invalid JSON message"):
        decode(text)


@pytest.mark.parametrize(
    "data",
    [
        {"job_id": "w0!0"},
        {"job_id": "w0!0", "alloc": ""},
        {"job_id": "w0!0", "alloc": "1-"},
        {"job_id": "w0!0", "alloc": "0-99999999999"},
        {"job_id": "w0!0", "alloc": "0", "mapping": {"1": "0"}},
        {"job_id": "w0!0", "alloc": "0", "mapping": {"0": "1"}},
        {"job_id": 5, "alloc": "0"},
    ],
)
def test_a_wrong_allocation_is_refused(data: dict[str, object]) -> None:
    message = {"now": 0.0, "events": [{"timestamp": 0.0, "type": "EXECUTE_JOB", "data": data}]}

    with pytest.raises(MalformedMessage, match=r"event 0 \(EXECUTE_JOB\)"):
        decode(json.dumps(message))


def test_actors_do_not_see_in_their_round_what_others_put_into_a_mailbox() -> None:
    scene, mailbox, seen = ActorKernel(), Mailbox(), []

    def sender() -> ActorCode:
        yield from mailbox.put("first")
        yield from mailbox.put("second")

    def receiver() -> ActorCode:
        for _ in range(2):
            message = yield from mailbox.get()
            seen.append((message, (yield from mailbox.is_empty())))

    scene.spawn(sender(), "here")
    scene.spawn(receiver(), "here")
    while (due := scene.due) is not None:
        scene.step(due)

    assert seen == [("first", True), ("second", True)]


def test_what_ends_at_one_date_ends_in_the_order_in_which_it_began() -> None:
    scene, ended = ActorKernel(), []

    def sleeper(name: str, *lengths: int) -> ActorCode:
        for length in lengths:
            yield Sleep(Duration(length))
        ended.append((name, scene.now))

    scene.spawn(sleeper("short and long", 2, 8), "here")
    scene.spawn(sleeper("long", 10), "here")
    while (due := scene.due) is not None:
        scene.step(due)

    assert ended == [("long", 10), ("short and long", 10)]


def test_messages_between_hosts_take_their_time_one_after_the_other() -> None:
    scene, mailbox, arrivals = ActorKernel(lambda source, target: Duration(600)), Mailbox(), []

    def sender() -> ActorCode:
        yield from mailbox.put("news")

    def receiver() -> ActorCode:
        for _ in range(3):
            yield from mailbox.get()
            arrivals.append(scene.now)

    for number in range(3):
        scene.spawn(sender(), f"host{number}")
    scene.spawn(receiver(), "master")
    while (due := scene.due) is not None:
        scene.step(due)

    assert arrivals == [600, 1200, 1800]
