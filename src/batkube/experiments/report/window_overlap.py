"""Overlap of the windows that an experiment's seeds draw from a trace.

Intervals assume independent runs, and windows with common jobs are not independent. Overlaps are frequent: of ten
windows of 500 jobs from a trace of 28,000 jobs, about two of the 45 pairs overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from batkube.experiments.report.grid_points import GridPoint, grouped_by_task
from batkube.experiments.results.findings import Findings
from batkube.kernel.errors import InputError
from batkube.outputs.files.manifest import read_manifest

_CONSEQUENCE = "such runs are less independent than their number suggests, and intervals somewhat too narrow"


def remark_on_windows(findings: Findings, points: Sequence[GridPoint]) -> str:
    """Return a remark on overlapping windows; empty if none overlap, or no workload is a window."""
    texts = [_overlap_text(findings, points[group[0]]) for group in grouped_by_task(points)]
    overlaps = "; ".join(dict.fromkeys(filter(None, texts)))
    return f"{overlaps}: {_CONSEQUENCE}." if overlaps else ""


def _overlap_text(findings: Findings, point: GridPoint) -> str:
    """Describe the overlap of the windows of one point's seeds; other schedulers had the same windows."""
    # Byte-identical runs count once, so that a window is not compared with itself.
    by_seed = {seed: row for (seed, _), row in point.completed.items()}
    runs = {row["digest"] or seed: str(row["run"]) for seed, row in by_seed.items()}
    traces = {run: _trace_of(findings, run) for run in runs.values()}
    try:
        windows = [frozenset(findings.results(run).jobs["job_id"]) for run, trace in traces.items() if trace]
    except InputError:
        return ""  # a run's folder was removed
    shares = [len(first & second) / min(len(first), len(second)) for first, second in combinations(windows, 2)]
    overlapping = sum(share > 0 for share in shares)
    if not overlapping:
        return ""
    trace = next(filter(None, traces.values()))
    pairs = f"{overlapping:,} of {len(shares):,} pairs of windows of {trace}"
    return f"{pairs} have jobs in common, up to {max(shares) * 100:.0f} % of them"


def _trace_of(findings: Findings, run: str) -> str:
    """Return the trace that a run's workload is a window of; empty if it is not a window."""
    scenario = read_manifest(findings.run_folder(run)).get("scenario") or {}
    recipes = [recipe for recipe in scenario.get("workload") or () if isinstance(recipe, dict) and "window" in recipe]
    return str(recipes[0].get("resample") or "") if len(recipes) == 1 else ""
