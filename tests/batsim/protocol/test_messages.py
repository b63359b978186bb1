"""Messages of Batsim's protocol are encoded as Batsim does, and decoded to equal messages."""

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
from batkube.kernel.instants import Instant

#: Dates have six decimals in JSON.
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
def test_an_encoded_message_is_decoded_to_an_equal_message(now: Instant, events: list[Event]) -> None:
    assert decode(encode(Message(now, events))) == Message(now, events)


def test_the_encoding_is_that_of_batsim() -> None:
    event = JobCompleted(
        at=Instant(10_500_000_000), job_id="w0!1", state="COMPLETED_SUCCESSFULLY", return_code=0, machines=0b101111
    )

    assert encode(Message(Instant(11 * 10**9), [event])) == (
        '{"now":11.000000,"events":[{"timestamp":10.500000,"type":"JOB_COMPLETED","data":'
        '{"job_id":"w0!1","job_state":"COMPLETED_SUCCESSFULLY","return_code":0,"alloc":"0-3 5"}}]}'
    )


@given(st.text() | st.binary())
def test_any_other_text_is_a_malformed_message(text: str | bytes) -> None:
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
def test_an_invalid_allocation_is_rejected(data: dict[str, object]) -> None:
    message = {"now": 0.0, "events": [{"timestamp": 0.0, "type": "EXECUTE_JOB", "data": data}]}

    with pytest.raises(MalformedMessage, match=r"event 0 \(EXECUTE_JOB\)"):
        decode(json.dumps(message))
