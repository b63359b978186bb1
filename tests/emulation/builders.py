"""Jobs, updates and Events for the tests of emulation."""

from __future__ import annotations

from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.manifests import PlannedJob
from batkube.kernel.instants import Instant, seconds
from batkube.workloads.model import Delay, Job


def make_job(name: str = "1", **fields: object) -> Job:
    """Return a job of one cpu that takes ten seconds, with the given fields replaced."""
    defaults: dict[str, object] = {
        "workload": "w0",
        "name": name,
        "submit": Instant(0),
        "size": 1,
        "profile": Delay(name="ten", duration=seconds(10)),
        "requests": (("cpu", 1000),),
    }
    return Job(**{**defaults, **fields})  # type: ignore[arg-type]


def make_planned_job(
    number: int = 0, job: Job | None = None, *, exit_code: int = 0, exceeds_walltime: bool = False
) -> PlannedJob:
    """Return a planned job that runs for ten seconds."""
    job = job or make_job(str(number))
    return PlannedJob(number, job, job.requests, seconds(10), seconds(10), exit_code, exceeds_walltime)


def pod_at(at_s: float, number: int = 0, name: str = "", **fields: object) -> PodUpdate:
    """Return an update of a pending pod, with the given fields replaced."""
    defaults: dict[str, object] = {
        "node": "",
        "phase": "Pending",
        "has_started": False,
        "started_at": "",
        "exit_code": 0,
        "reason": "",
        "is_disrupted": False,
        "is_deleted": False,
    }
    at = Instant(seconds(at_s))
    return PodUpdate(at=at, number=number, name=name or f"w0-{number}", **{**defaults, **fields})  # type: ignore[arg-type]


def event_at(at_s: float, reason: str, pod: str = "w0-0", *, count: int = 1, name: str = "") -> PodEvent:
    """Return an Event about a pod."""
    return PodEvent(Instant(seconds(at_s)), pod, name or f"{pod}.{reason}", reason, f"because of {reason}", count)
