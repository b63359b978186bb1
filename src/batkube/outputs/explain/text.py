"""An explanation as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from batkube.kernel.instants import human_duration
from batkube.kernel.quantities import MACHINE, PODS
from batkube.outputs.explain.model import Explanation, JobExplanation, NodeExplanation, PodExplanation, Use
from batkube.outputs.explain.phrases import amount_text, end_text, exact_time
from batkube.outputs.explain.placement_text import PlacementText

#: How many of the jobs on a node are printed.
_MAX_STAYS = 20


def lines_of(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation."""
    if isinstance(explanation, NodeExplanation):
        yield from _node_lines(explanation)
        return
    yield _job_title(explanation) if isinstance(explanation, JobExplanation) else _pod_title(explanation)
    if not explanation.has_reasons:
        yield "The run recorded no reasons (--explain), so causes are derived from its journal."
    count = len(explanation.executions)
    for number, placement in enumerate(explanation.executions, start=1):
        if count > 1:
            yield f"Execution {number} of {count}:"
        for line in PlacementText(placement, explanation.counted).lines():
            yield f"  {line}"
    outcome = explanation.final_state if isinstance(explanation, JobExplanation) else explanation.phase
    yield f"Outcome: {outcome or 'none at the end of the run'}"


def _job_title(job: JobExplanation) -> str:
    parts = [f"Job {job.name} under {job.scheduler}"]
    if job.size is not None:
        parts.append(f"{job.size} {job.counted.removesuffix('s') if job.size == 1 else job.counted}")
    if job.walltime is not None:
        parts.append(f"walltime {human_duration(job.walltime)}")
    if job.priority:
        parts.append(f"priority {job.priority}")
    if job.user:
        parts.append(f"user {job.user}")
    return ", ".join(parts)


def _pod_title(pod: PodExplanation) -> str:
    owner = f"job {pod.job}" if pod.job else pod.owner
    requests = [
        f"{name} {amount_text(name, amount)}" for name, amount in pod.requests.items() if amount and name != MACHINE
    ]
    title = f"Pod {pod.name}{f' of {owner}' if owner else ''} under {pod.scheduler}"
    return f"{title}, requests {', '.join(requests)}" if requests else title


def _node_lines(node: NodeExplanation) -> Iterator[str]:
    capacity = [f"{name} {amount_text(name, amount)}" for name, amount in node.capacity.items() if name != MACHINE]
    labels = [f"{label} {value}" for label in ("zone", "rack", "pool") if (value := getattr(node, label))]
    yield f"Node {node.name}, machine {node.machine}: {', '.join([*capacity, *labels])}"
    for begin, end in node.existed:
        yield f"  existed from {exact_time(begin)} to {end_text(end)}"
    for use in node.uses:
        yield f"  {_use_text(use)}"
    yield f"  no pod was on it for {exact_time(node.idle)}"
    for status in node.statuses:
        yield f"  {status.status} from {exact_time(status.begin)} to {end_text(status.end)}"
    yield f"  {len(node.stays):,} jobs or pods were on it{':' if node.stays else ''}"
    for stay in node.stays[:_MAX_STAYS]:
        pods = f" ({stay.pods} pods)" if stay.pods > 1 else ""
        yield f"    {exact_time(stay.since)} – {end_text(stay.until)}  {stay.name}{pods}"
    if len(node.stays) > _MAX_STAYS:
        yield f"    … and {len(node.stays) - _MAX_STAYS:,} more (--json has all)"


def _use_text(use: Use) -> str:
    if use.resource == MACHINE:
        return f"used {use.mean:.1%} of the time"
    name = "pod slots" if use.resource == PODS else use.resource
    peak, total = amount_text(use.resource, use.peak), amount_text(use.resource, use.capacity)
    return f"{name}: {use.mean:.1%} used on average, at most {peak} of {total}"
