"""Latencies files, delays drawn from latencies, and jobs to run with them."""

from __future__ import annotations

from pathlib import Path

from batkube.execution.latencies.delays import Delays, Latencies
from batkube.kernel.distributions import parse_distribution
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.streams import Streams

NGINX = {"name": "job", "image": "nginx"}
#: Pods that share nodes, of 10 s.
PROFILES = {"d10": {"type": "delay", "delay": 10, "cpu": 1}}


def jobs(count: int, every: float = 0) -> list[dict[str, object]]:
    return [{"id": str(n), "subtime": n * every, "res": 1, "profile": "d10"} for n in range(1, count + 1)]


def latencies(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "latencies.yaml"
    path.write_text(text)
    return path


def delays(**steps: object) -> Delays:
    parsed = {name: parse_distribution(value) if isinstance(value, str) else value for name, value in steps.items()}
    return Delays(Latencies(**parsed), Streams(0))  # type: ignore[arg-type]


def at(instant: float) -> Instant:
    return Instant(seconds(instant))
