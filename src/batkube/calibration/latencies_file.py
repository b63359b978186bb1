"""A calibration as a latencies file, with the evidence for each line beside it."""

from __future__ import annotations

from collections.abc import Iterator

from batkube.calibration.calibrate import Calibration
from batkube.calibration.fitting import Fit
from batkube.kernel.distributions import Distribution
from batkube.kernel.quantities import format_amount

_WIDTH = 116


def latencies_text(calibration: Calibration) -> str:
    """Return the text of the latencies file."""
    return "\n".join(_text_lines(calibration)) + "\n"


def _text_lines(calibration: Calibration) -> Iterator[str]:
    runs = len(calibration.sources)
    yield f"# Made by `batkube calibrate` from {runs} recorded run{'s' if runs > 1 else ''}, {calibration.jobs} jobs."
    yield "# Steps are in seconds. KS: the largest distance between the fitted and the recorded distribution function."
    if calibration.client is not None:
        yield ""
        yield "# The client that submitted: so many jobs at once, then so many a second."
        yield f"client: {{qps: {calibration.client.qps:g}, burst: {calibration.client.burst}}}"
    yield ""
    yield from _steps(calibration)
    yield ""
    yield from _system_pods(calibration)


def _steps(calibration: Calibration) -> Iterator[str]:
    opened = ""
    for one in calibration.fits:
        step, _, turn = one.sample.step.partition(".")
        if turn and step != opened:
            yield f"{step}:"
            opened = step
        indent = "  " if turn else ""
        yield f"{indent}# {fit_summary(one)}"
        yield from _distribution_lines(f"{indent}{turn or step}", one.distribution, indent)
        if step == "pull" and calibration.cached_share:
            yield "# The share of nodes that had the image when a run began."
            yield f"cached: {calibration.cached_share:.4g}"
    if calibration.cached_share == 1:
        yield "# Every node had the image when a run began."
        yield "cached: 1"


def fit_summary(one: Fit) -> str:
    """Return the evidence for a fit, in one line."""
    sample = one.sample
    missing = f" ({sample.missing} not recorded)" if sample.missing else ""
    return (
        f"{len(sample)} times{missing}, mean {sample.values.mean():.3f} (fit {one.mean:.3f}), KS {one.ks_distance:.3f}"
    )


def _distribution_lines(key: str, distribution: Distribution, indent: str) -> Iterator[str]:
    if distribution.name != "empirical":
        yield f"{key}: {distribution.describe()}"
        return
    yield f"{key}:"
    yield f"{indent}  name: empirical"
    line = f"{indent}  values: ["
    for number, value in enumerate(distribution.parameters):
        word = f"{value:g}" + ("]" if number == len(distribution.parameters) - 1 else ", ")
        if len(line) + len(word) > _WIDTH:
            yield line.rstrip()
            line = f"{indent}    "
        line += word
    yield line


def _system_pods(calibration: Calibration) -> Iterator[str]:
    nodes = calibration.nodes
    seen = f"Jobs ran on {nodes.used} nodes, at most {nodes.peak_concurrency} jobs at once"
    if nodes.stated is None:
        yield f"# {seen}. How many nodes there were was not recorded: the pod of cluster DNS"
        yield "# that every cluster has is assumed. Remove it if the nodes ran nothing but jobs, or give --nodes."
    else:
        yield f"# {seen}, and there were {nodes.stated} nodes."
        if nodes.system_pods:
            yield "# Nodes that no job used are taken to hold a pod of the cluster itself."
    if not nodes.system_pods:
        yield "system-pods: []"
        return
    yield "system-pods:"
    for pod in nodes.system_pods:
        requests = "".join(f", {resource}: {format_amount(resource, held)}" for resource, held in pod.requests)
        yield f"  - {{name: {pod.name}{requests}}}"
