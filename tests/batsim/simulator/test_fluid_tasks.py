"""Tasks that share hosts and links.

Each case is run with our Batsim, and with the real one if a `batsim` is on the PATH.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.batsim.simulator.simulations import (
    TASK,
    Decision,
    EitherBatsim,
    and_call,
    on_first_machines,
)


def test_the_storage_label_may_be_in_the_field_host(batsim: EitherBatsim) -> None:
    """100 MB over a link of 125 MB/s."""
    role = '<prop id="role" value="storage"/>'
    hosts = '<host id="master_host" speed="1Gf"/><host id="n" speed="1Gf"/>' + "".join(
        f'<host id="{name}" speed="0f">{role}</host>' for name in ("a", "b")
    )
    link = '<link id="l" bandwidth="125MBps" latency="0"/>'
    names = ("master_host", "n", "a", "b")
    routes = "".join(
        f'<route src="{source}" dst="{target}"><link_ctn id="l"/></route>'
        for place, source in enumerate(names)
        for target in names[place + 1 :]
    )
    batsim.platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        f'<zone id="z" routing="Full">{hosts}{link}{routes}</zone></platform>'
    )
    profile = {"type": "parallel_homogeneous_pfs", "bytes_to_write": 1e8, "bytes_to_read": 0, "host": "there"}

    def react(kind: str, data: Mapping[str, Any]) -> list[Decision]:
        return [(type_, {**body, "storage_mapping": {"there": 2}}) for type_, body in on_first_machines(kind, data)]

    batsim([{"profile": "write"}], {"write": profile}, react=react)

    assert float(batsim.rows[0]["execution_time"]) == pytest.approx(0.8, abs=1e-6)


def test_a_job_starts_slightly_after_its_message_if_messages_take_time(batsim: EitherBatsim) -> None:
    """Batsim's internal messages take 0.1 ns: a job of 5 s starts after 0, and ends after a call at 5 s."""
    batsim.platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<zone id="z" routing="Full"><host id="master_host" speed="1Gf"/><host id="n" speed="1Gf"/>'
        '<link id="l" bandwidth="1GBps" latency="1ms"/>'
        '<route src="master_host" dst="n"><link_ctn id="l"/></route></zone></platform>'
    )

    events = batsim([{"profile": "task"}], {"task": TASK}, react=and_call(5))

    assert [(round(at, 3), kind) for at, kind, _ in events if 5 <= at < 6 and kind != "SIMULATION_ENDS"] == [
        (5.0, "REQUESTED_CALL"),
        (5.001, "JOB_COMPLETED"),
    ]
