"""Time zones of CronJobs."""

from __future__ import annotations

import pytest

from batkube.api.groups.batch.cron_schedules import check_zone
from batkube.api.validation.problems import Problems


@pytest.mark.parametrize(("zone", "good"), [("Europe/Paris", True), ("UTC", True), ("Mars/X", False), ("../x", False)])
def test_a_time_zone_must_exist(zone: str, good: bool) -> None:
    problems = Problems()
    check_zone(zone, "spec.timeZone", problems)

    assert (not problems) == good
