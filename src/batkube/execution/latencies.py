"""The delays of a pod's life that are not its own work.

    bound ──notice──▶ kubelet knows ──pull──▶ image there ──create──▶ container made ──start──▶ Running
    work ends ──report──▶ terminal status seen, resources free
    deleted ──termination──▶ stopped, resources free (at most the grace period)

Each is a distribution in seconds, drawn per pod from its own named stream; all are zero unless a latencies file says
otherwise. An image is pulled once per node and then cached, as a kubelet does with imagePullPolicy IfNotPresent; a pod
that comes while its image is being pulled waits for that pull.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.documents import read_yaml
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import Duration, Instant, after, seconds
from batkube.kernel.streams import Streams


@dataclass(frozen=True, slots=True)
class Latencies:
    """The distributions, in seconds; None means no delay."""

    notice: Distribution | None = None
    pull: Distribution | None = None
    create: Distribution | None = None
    start: Distribution | None = None
    report: Distribution | None = None
    termination: Distribution | None = None

    @property
    def are_zero(self) -> bool:
        """True when no pod is ever delayed."""
        return all(getattr(self, step.name) is None for step in fields(self))

    def describe(self) -> dict[str, str]:
        """Return the delays by step, as the manifest shows them."""
        steps = {step.name: getattr(self, step.name) for step in fields(self)}
        return {name: distribution.describe() for name, distribution in steps.items() if distribution is not None}


NO_LATENCIES = Latencies()


def read_latencies(path: Path) -> Latencies:
    """Read a latencies file: a mapping from step to distribution, `pull: lognormal:2.5,0.4`."""
    content = read_yaml(path)
    known = [step.name for step in fields(Latencies)]
    if not isinstance(content, Mapping):
        raise InputError(path, problem="is not a mapping of steps to distributions", remedy=f"steps: {known}")
    steps: dict[str, Distribution] = {}
    for name, text in content.items():
        if name not in known:
            raise InputError(path, at=str(name), problem="is not a step of a pod's life", remedy=f"steps: {known}")
        try:
            steps[name] = parse_distribution(text)
        except ValueError as error:
            raise InputError(path, at=str(name), problem=str(error)) from error
    return Latencies(**steps)


class Delays:
    """Draws the delays of one run, each step from its own stream, and remembers which node has which image."""

    def __init__(self, latencies: Latencies, streams: Streams) -> None:
        self._latencies = latencies
        self._streams = streams
        #: When each image is, or was, there, by node and image.
        self._image_ready: dict[tuple[str, str], Instant] = {}

    def until_running(self, now: Instant, node: str, image: str) -> Instant:
        """Return when a pod bound at `now` will be running on `node`."""
        noticed = after(now, self._draw("notice"))
        ready = self._image_ready.get((node, image))
        if ready is None:
            ready = self._image_ready[node, image] = after(noticed, self._draw("pull"))
        created = after(max(noticed, ready), self._draw("create"))
        return after(created, self._draw("start"))

    def until_reported(self, now: Instant) -> Instant:
        """Return when the end, at `now`, of a pod's work becomes known."""
        return after(now, self._draw("report"))

    def until_stopped(self, now: Instant, deadline: Instant) -> Instant:
        """Return when a pod that was told at `now` to stop has stopped: at the latest at its deadline."""
        return min(after(now, self._draw("termination")), max(now, deadline))

    def _draw(self, step: str) -> Duration:
        distribution: Distribution | None = getattr(self._latencies, step)
        if distribution is None:
            return Duration(0)
        drawn = distribution.draw(self._streams.named(f"latency/{step}"))
        try:
            return max(Duration(0), seconds(drawn))
        except ValueError as error:
            raise RunFailed(f"the latency {step!r} was drawn as {drawn:g} s, which no run can last") from error
