"""The latencies of a cluster: delays of pods, and the latencies file that defines them.

    due ──client──▶ job submitted ──spawn──▶ pods created
    bound ──notice──▶ seen by kubelet ──pull or check──▶ image present ──create──▶ container created ──start──▶ Running
    work ends ──report──▶ terminal status visible, resources released
    deleted ──termination──▶ stopped, resources released (at most after the grace period)

Each step is a distribution in seconds, drawn per pod from its own named stream. All are zero unless a latencies file
defines them. `notice`, `create` and `start` may differ between the first pod on a node and later ones, since the first
is slower on real nodes. See `image_pulls` for images, `system_pods` for the cluster's own pods, and `request_limit` for
the submitting client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from batkube.cluster.store import KubeObject
from batkube.execution.latencies.image_pulls import NodeImages
from batkube.execution.latencies.request_limit import RequestLimit
from batkube.execution.latencies.system_pods import SystemPod
from batkube.files.yaml_reader import read_yaml
from batkube.kernel.distributions import Distribution, parse_distribution
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import Duration, Instant, after, seconds
from batkube.kernel.streams import Streams


class FirstPodStep(NamedTuple):
    """A step with different distributions for the first pod of the run on a node and for later ones."""

    first: Distribution
    later: Distribution


Step = Distribution | FirstPodStep


@dataclass(frozen=True, slots=True)
class Latencies:
    """The content of a latencies file; steps are distributions in seconds, None for no delay."""

    spawn: Distribution | None = None
    notice: Step | None = None
    #: Pulling an image that is not on the node.
    pull: Distribution | None = None
    #: Checking an image on the node against the registry, as imagePullPolicy Always does for every pod.
    check: Distribution | None = None
    create: Step | None = None
    start: Step | None = None
    report: Distribution | None = None
    termination: Distribution | None = None
    #: The probability that a node has an image when the run begins.
    cached: float = 0.0
    client: RequestLimit | None = None
    system_pods: tuple[SystemPod, ...] = ()

    @property
    def are_zero(self) -> bool:
        """Whether all steps are zero."""
        return all(getattr(self, name) is None for name in STEPS)

    @property
    def run_only_keys(self) -> list[str]:
        """The keys in use that have no effect in `serve`, where users submit jobs and controllers create pods."""
        steps = {"spawn": self.spawn, "client": self.client, "system-pods": self.system_pods}
        return [key for key, value in steps.items() if value]

    def describe(self) -> dict[str, str]:
        """Return the content for the manifest of a run."""
        texts: dict[str, str] = {}
        for name in STEPS:
            step: Step | None = getattr(self, name)
            if isinstance(step, FirstPodStep):
                texts |= {f"{name}.first": step.first.describe(), f"{name}.later": step.later.describe()}
            elif step is not None:
                texts[name] = step.describe()
        if self.cached:
            texts["cached"] = f"{self.cached:g}"
        if self.client is not None:
            texts["client"] = self.client.describe()
        if self.system_pods:
            texts["system-pods"] = "; ".join(pod.describe() for pod in self.system_pods)
        return texts


#: The keys of a latencies file that are distributions.
STEPS = ("spawn", "notice", "pull", "check", "create", "start", "report", "termination")
_FIRST_POD_STEPS = ("notice", "create", "start")
_KEYS = (*STEPS, "cached", "client", "system-pods")

NO_LATENCIES = Latencies()


def read_latencies(path: Path) -> Latencies:
    """Read a latencies file: a mapping from step to distribution, `pull: lognormal:2.5,0.4`, and a few other keys."""
    content = read_yaml(path)
    if not isinstance(content, Mapping):
        raise InputError(path, problem="is not a mapping of steps to distributions", remedy=f"steps: {list(STEPS)}")
    fields: dict[str, object] = {}
    for name, value in content.items():
        if name not in _KEYS:
            raise InputError(
                path, at=str(name), problem="is not a latency step", remedy=f"known keys: {', '.join(_KEYS)}"
            )
        try:
            fields[name.replace("-", "_")] = _parse_value(name, value, path)
        except ValueError as error:
            raise InputError(path, at=name, problem=str(error)) from error
    return Latencies(**fields)  # type: ignore[arg-type]  # each key was parsed to the type of its field


def _parse_value(name: str, value: object, path: Path) -> object:
    if name == "cached":
        return _parse_share(value)
    if name == "client":
        return RequestLimit.parse(value)
    if name == "system-pods":
        return SystemPod.parse_all(value, str(path))
    if name in _FIRST_POD_STEPS and isinstance(value, Mapping) and value.keys() & {"first", "later"}:
        if value.keys() != {"first", "later"}:
            raise ValueError(f"has {', '.join(map(str, value))}; write both `first` and `later`, and nothing else")
        return FirstPodStep(_parse_step(value["first"]), _parse_step(value["later"]))
    return _parse_step(value)


def _parse_step(value: object) -> Distribution:
    """Parse the distribution of a step. A constant must not be negative; negative draws of others count as 0."""
    step = parse_distribution(value)  # type: ignore[arg-type]  # it rejects invalid values
    if step.name == "constant":
        (constant,) = step.parameters
        if constant < 0:
            raise ValueError(f"{constant:g} is negative; a step takes 0 s or more")
        try:
            seconds(constant)
        except ValueError as error:
            raise ValueError(f"{constant:g} s is longer than a run can last") from error
    return step


def _parse_share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{value!r} is not a share; write a number between 0 (no node has the image) and 1 (all have)")
    return float(value)


class Delays:
    """Draws the delays of one run, each step from its own stream, and tracks the images on each node."""

    def __init__(self, latencies: Latencies, streams: Streams) -> None:
        self._latencies = latencies
        #: Whether every delay is zero, as in most runs with a policy.
        self._are_zero = latencies.are_zero
        self._streams = streams
        self._images = NodeImages(
            pull=lambda: self._draw("pull"), check=lambda: self._draw("check"), is_there=self._is_cached
        )
        #: The nodes that have had a pod.
        self._used_nodes: dict[str, None] = {}

    def spawned_at(self, now: Instant) -> Instant:
        """Return when the pods of a job submitted at `now` are created."""
        return now if self._are_zero else after(now, self._draw("spawn"))

    def running_at(self, now: Instant, node: str, container: KubeObject) -> Instant:
        """Return when a pod with this container, bound at `now`, will be running on `node`."""
        is_first = node not in self._used_nodes
        self._used_nodes[node] = None
        noticed = after(now, self._draw("notice", is_first))
        available = self._images.available_at(now, noticed, node, container)
        created = after(available, self._draw("create", is_first))
        return after(created, self._draw("start", is_first))

    def ranks_by_start(
        self, now: Instant, ranks: Sequence[int], nodes: Sequence[str], pod: KubeObject
    ) -> dict[Instant, Sequence[int]]:
        """Return the ranks of pods, all equal to `pod` and bound to `nodes`, by the instant at which they will run."""
        if self._are_zero:
            return {now: ranks}
        starts: dict[Instant, list[int]] = {}
        for rank, node in zip(ranks, nodes, strict=True):
            starts.setdefault(self.running_at(now, node, pod["spec"]["containers"][0]), []).append(rank)
        return dict(starts)

    def ranks_by_report(self, now: Instant, ranks: Sequence[int]) -> dict[Instant, Sequence[int]]:
        """Return the ranks of pods whose work ends at `now`, by the instant at which that is reported."""
        if self._are_zero:
            return {now: ranks}
        reports: dict[Instant, list[int]] = {}
        for rank in ranks:
            reports.setdefault(self.reported_at(now), []).append(rank)
        return dict(reports)

    def reported_at(self, now: Instant) -> Instant:
        """Return when the end of a pod's work at `now` is reported."""
        return after(now, self._draw("report"))

    def stopped_at(self, now: Instant, deadline: Instant) -> Instant:
        """Return when a pod that is deleted at `now` has stopped, at the latest at its deadline."""
        return min(after(now, self._draw("termination")), max(now, deadline))

    def _is_cached(self) -> bool:
        chance = self._latencies.cached
        return chance > 0 and self._streams.named("latency/cached").random() < chance

    def _draw(self, name: str, is_first: bool = False) -> Duration:
        step: Step | None = getattr(self._latencies, name)
        if step is None:
            return Duration(0)
        if isinstance(step, FirstPodStep):
            step = step.first if is_first else step.later
        drawn = step.draw(self._streams.named(f"latency/{name}"))
        try:
            return max(Duration(0), seconds(drawn))
        except ValueError as error:
            raise RunFailed(
                f"the latency {name!r} was drawn as {drawn:g} s, which is longer than a run can last"
            ) from error


#: For clusters without latencies. It has no state, since nothing is drawn.
NO_DELAYS = Delays(NO_LATENCIES, Streams(0))
