"""Validation of CronJob schedules and time zones beyond their syntax.

Kubernetes: pkg/apis/batch/validation, validateScheduleFormat and validateTimeZone.
"""

from __future__ import annotations

import re

from batkube.api.validation.problems import Problems
from batkube.cluster.cron.parser import InvalidSchedule, parse_schedule
from batkube.cluster.cron.time_zones import UnknownZone, zone_of

_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def check_schedule(text: str, path: str, problems: Problems, zone: str | None, old: str | None) -> None:
    """Check a schedule; only a schedule that had a time zone before may keep one."""
    if not text:
        problems.required(path)
        return
    try:
        parse_schedule(text)
    except InvalidSchedule as wrong:
        problems.invalid(path, text, str(wrong))
    if "TZ" not in text:
        return
    if old is None or "TZ" not in old:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        problems.invalid(path, text, detail)
    elif zone is not None:
        problems.invalid(path, text, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def check_zone(zone: str, path: str, problems: Problems) -> None:
    """Check the name of a time zone."""
    if not zone:
        problems.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            problems.invalid(path, zone, f"unknown time zone {zone}")
            return
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        problems.invalid(path, zone, detail)
    try:
        zone_of(zone)
    except UnknownZone as wrong:
        problems.invalid(path, zone, str(wrong))
