"""Write a calibration as a latencies file, with the quality of each fit as a comment."""

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
    yield f"# `batkube calibrate` of {runs} recorded run{'s' if runs > 1 else ''}, {calibration.jobs} jobs."
    yield "# Steps are in seconds. KS: the largest distance between the fitted and the recorded distribution function."
    if calibration.client is not None:
        yield ""
        yield "# The rate limit of the submitting client: `burst` jobs at once, then `qps` per second."
        yield f"client: {{qps: {calibration.client.qps:g}, burst: {calibration.client.burst}}}"
    yield ""
    yield from _steps(calibration)
    yield ""
    yield from _system_pods(calibration)


def _steps(calibration: Calibration) -> Iterator[str]:
    open_step = ""
    for fit in calibration.fits:
        step, _, part = fit.sample.step.partition(".")
        if part and step != open_step:
            yield f"{step}:"
            open_step = step
        indent = "  " if part else ""
        yield f"{indent}# {fit_summary(fit)}"
        yield from _distribution_lines(f"{indent}{part or step}", fit.distribution, indent)
        if step == "pull" and calibration.cached_share:
            yield "# The share of nodes that had the image at the start of a run."
            yield f"cached: {calibration.cached_share:.4g}"
    if calibration.cached_share == 1:
        yield "# Every node had the image at the start of a run."
        yield "cached: 1"


def fit_summary(fit: Fit) -> str:
    """Return the evidence for a fit, in one line."""
    sample = fit.sample
    missing = f" ({sample.missing} not recorded)" if sample.missing else ""
    return (
        f"{len(sample)} times{missing}, mean {sample.values.mean():.3f} (fit {fit.mean:.3f}), KS {fit.ks_distance:.3f}"
    )


def _distribution_lines(key: str, distribution: Distribution, indent: str) -> Iterator[str]:
    if distribution.name != "empirical":
        yield f"{key}: {distribution.describe()}"
        return
    yield f"{key}:"
    yield f"{indent}  name: empirical"
    line = f"{indent}  values: ["
    for number, value in enumerate(distribution.parameters):
        text = f"{value:g}" + ("]" if number == len(distribution.parameters) - 1 else ", ")
        if len(line) + len(text) > _WIDTH:
            yield line.rstrip()
            line = f"{indent}    "
        line += text
    yield line


def _system_pods(calibration: Calibration) -> Iterator[str]:
    nodes = calibration.nodes
    usage = f"Jobs ran on {nodes.used} nodes, at most {nodes.peak_concurrency} jobs at once"
    if nodes.total is None:
        yield f"# {usage}. The number of nodes was not recorded:"
        yield "# one pod of cluster DNS is assumed. Remove it if nodes ran only jobs, or use --nodes."
    else:
        yield f"# {usage}, of {nodes.total} nodes."
        if nodes.system_pods:
            yield "# Each node that no job used is assumed to run a system pod."
    if not nodes.system_pods:
        yield "system-pods: []"
        return
    yield "system-pods:"
    for pod in nodes.system_pods:
        requests = "".join(f", {resource}: {format_amount(resource, amount)}" for resource, amount in pod.requests)
        yield f"  - {{name: {pod.name}{requests}}}"
