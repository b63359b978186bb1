"""Python programs in virtual time: asyncio, threads, and functions that return the time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.timing.pages.test_session_page import START_NS, run_to_end

from batkube import clock
from batkube.timing.pages.session_page import SessionPage

PROGRAM = """
import asyncio, datetime, queue, random, threading, time

start = time.monotonic()
def report(*words):
    print(f"{time.monotonic() - start:g}", *words, flush=True)

async def tick(period):
    for _ in range(3):
        await asyncio.sleep(period)
        report("tick of", period)

async def loop():
    await asyncio.sleep(100)
    report("asyncio.sleep")
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 50)
    except TimeoutError:
        report("wait_for")
    await asyncio.gather(tick(7), tick(11))
    await asyncio.to_thread(time.sleep, 30)
    report("to_thread")

print(int(time.time()), time.gmtime().tm_year, datetime.datetime.now(datetime.UTC).isoformat(), datetime.date.today())
print(isinstance(datetime.datetime.now(), datetime.datetime), isinstance(datetime.datetime.now(), datetime.date))
time.sleep(3600)
report("sleep")
asyncio.run(loop())
jobs = queue.Queue()
try:
    jobs.get(timeout=20)
except queue.Empty:
    report("queue empty")
threading.Timer(40, lambda: jobs.put("a job")).start()
report(jobs.get(timeout=60))
report("event", threading.Event().wait(5))
lock = threading.Lock()
with lock:
    report("lock", lock.acquire(timeout=3))
"""
LINES = """
3600 sleep
3700 asyncio.sleep
3750 wait_for
3757 tick of 7
3761 tick of 11
3764 tick of 7
3771 tick of 7
3772 tick of 11
3783 tick of 11
3813 to_thread
3833 queue empty
3873 a job
3878 event False
3881 lock False
"""


def test_all_timed_waits_of_python_are_in_virtual_time(session: SessionPage, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    date_line, type_line, *lines = run_to_end(
        session, {}, sys.executable, str(Path(clock.__file__).parent), str(program)
    )

    assert date_line == f"{START_NS // 10**9} 2000 2000-01-01T00:00:00+00:00 2000-01-01"
    assert type_line == "True True"
    assert lines == LINES.split("\n")[1:-1]


def test_outside_a_run_install_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BATKUBE_CLOCK", raising=False)
    before = time.time
    assert not clock.install()
    assert time.time is before
