"""Replies of schedulers: the dates of their events, and replies that are invalid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.batsim.platforms import silent_platform
from tests.batsim.recordings import arguments_of, read_table

from batkube.batsim.simulator.run import run_batsim
from batkube.kernel.errors import RunFailed


class ScriptedScheduler:
    """Replies to the submission of the only job with a text, and to all other messages without events."""

    def __init__(self, reply: str) -> None:
        self._reply = reply

    def request(self, text: str) -> bytes:
        """Return the reply to a message."""
        message = json.loads(text)
        if any(event["type"] == "JOB_SUBMITTED" for event in message["events"]):
            return self._reply.encode()
        return json.dumps({"now": message["now"], "events": []}).encode()


def simulate(folder: Path, reply: str) -> list[str]:
    """Simulate a job of 3 s, and return its row in the file of the jobs."""
    platform = silent_platform(folder, 2)
    jobs = [{"id": "0", "subtime": 1, "res": 1, "profile": "d"}]
    (folder / "w.json").write_text(
        json.dumps({"nb_res": 2, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 3}}})
    )
    arguments = arguments_of(["-p", str(platform), "-w", str(folder / "w.json"), "-e", str(folder / "out")])
    run_batsim(arguments, scheduler=ScriptedScheduler(reply))
    header, row = read_table(folder / "out_jobs.csv")
    return [row[header.index(name)] for name in ("starting_time", "finish_time")]


def execution(at: float, now: float) -> str:
    event = {"timestamp": at, "type": "EXECUTE_JOB", "data": {"job_id": "w0!0", "alloc": "0"}}
    return json.dumps({"now": now, "events": [event]})


def test_a_decision_takes_effect_at_its_timestamp(tmp_path: Path) -> None:
    assert simulate(tmp_path, execution(5, 7)) == ["5.000000", "8.000000"]


def test_an_event_later_than_the_reply_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="timestamp 9 of event 0 should be lower than or equal to now=7"):
        simulate(tmp_path, execution(9, 7))


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("not JSON", "Invalid JSON message"),
        (json.dumps({"now": 1, "events": [{"timestamp": 1, "type": "JOB_COMPLETED", "data": {}}]}), "JOB_COMPLETED"),
    ],
    ids=["not JSON", "an event of Batsim"],
)
def test_an_invalid_reply_ends_the_simulation(reply: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=problem):
        simulate(tmp_path, reply)
