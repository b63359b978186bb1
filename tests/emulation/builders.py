"""Small things that the tests of emulation are made of."""

from __future__ import annotations

from batkube.emulation.client.watch_events import PodEvent, PodUpdate
from batkube.emulation.manifests import PlannedJob
from batkube.kernel.instants import Instant, seconds
from batkube.workloads.model import Delay, Job


def make_job(name: str = "1", **fields: object) -> Job:
    """Return a job of one cpu that takes ten seconds, with other fields as given."""
    usual: dict[str, object] = {
        "workload": "w0",
        "name": name,
        "submit": Instant(0),
        "size": 1,
        "profile": Delay(name="ten", duration=seconds(10)),
        "requests": (("cpu", 1000),),
    }
    return Job(**{**usual, **fields})  # type: ignore[arg-type]


def make_task(number: int = 0, job: Job | None = None, *, exit_code: int = 0, is_cut: bool = False) -> PlannedJob:
    """Return a job as it will be played, at full length."""
    played = job or make_job(str(number))
    return PlannedJob(number, played, played.requests, seconds(10), seconds(10), exit_code, is_cut)


def pod_at(at_s: float, number: int = 0, name: str = "", **fields: object) -> PodUpdate:
    """Return what is seen of a pending pod, with other fields as given."""
    usual: dict[str, object] = {
        "node": "",
        "phase": "Pending",
        "has_started": False,
        "started_at": "",
        "exit_code": 0,
        "reason": "",
        "is_disrupted": False,
        "is_gone": False,
    }
    at = Instant(seconds(at_s))
    return PodUpdate(at=at, number=number, name=name or f"w0-{number}", **{**usual, **fields})  # type: ignore[arg-type]


def event_at(at_s: float, reason: str, pod: str = "w0-0", *, count: int = 1, name: str = "") -> PodEvent:
    """Return an Event about a pod."""
    return PodEvent(Instant(seconds(at_s)), pod, name or f"{pod}.{reason}", reason, f"because of {reason}", count)
