"""Summarize the experiment by scheduler: a table in Markdown, and a figure of slowdowns by job size.

    python summary.py OUT [--figure slowdown.svg]

OUT is the folder of `batkube experiment gangs.yaml --out OUT`. A scheduler that ended in a deadlock has a row without
metrics, since those of the jobs before the deadlock would be too good.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import batkube
from batkube.outputs.measures.metrics import BOUND_S, bounded_slowdowns
from batkube.outputs.results import Results

#: The largest job of each class but the last, in pods.
CLASSES = (1, 4, 12)
NAMES = ("1 pod", "2–4", "5–12", "more than 12")
COLOURS = ("#c6d8e8", "#8bb3d4", "#4a85b5", "#1f4e79")


def slowdowns(jobs: pd.DataFrame) -> list[float]:
    """Return the mean bounded slowdown of jobs by size class."""
    done = jobs[jobs["finish_time"].notna()]
    bounds = [0, *CLASSES, float("inf")]
    classes = pd.cut(done["requested_number_of_resources"], bounds, labels=NAMES)
    means = done.assign(slowdown=bounded_slowdowns(done)).groupby(classes, observed=False)["slowdown"].mean()
    return [float(means[name]) for name in NAMES]


def row(label: str, run: Results, failure: str) -> str:
    """Return the row of a scheduler."""
    if failure:
        why = "deadlock" if failure.startswith("deadlock") else failure.partition(":")[0][:60]
        return f"| {label} | {why} after {run.manifest['end_s']:,.0f} s, {len(run.jobs):,} jobs done |" + " |" * 10
    numbers = run.metrics
    by_size = " | ".join(f"{one:,.1f}" for one in slowdowns(run.jobs))
    cpu_s = run.manifest["real"]["cpu_s"] + sum(one["cpu_s"] for one in run.manifest["real"]["programs"])
    return (
        f"| {label} | {numbers.makespan_s:,.0f} | {numbers.wait_s_mean:,.0f} | {numbers.wait_s_p95:,.0f} "
        f"| {numbers.wait_s_max:,.0f} | {by_size} | {100 * (numbers.utilisation or 0):.1f} "
        f"| {numbers.fairness:.2f} | {cpu_s:,.0f} |"
    )


def draw(rows: dict[str, list[float]], path: Path) -> None:
    """Draw the mean bounded slowdown by size class, for each scheduler that completed the workload."""
    plt.rcParams.update({"svg.hashsalt": "gangs", "font.size": 9})
    figure, axes = plt.subplots(figsize=(7.5, 0.55 * len(rows) + 1), layout="constrained")
    height = 0.8 / len(NAMES)
    for number, (name, colour) in enumerate(zip(NAMES, COLOURS, strict=True)):
        places = [place + number * height for place in range(len(rows))]
        axes.barh(places, [values[number] for values in rows.values()], height, label=name, color=colour)
    axes.set_yticks([place + 1.5 * height for place in range(len(rows))], list(rows))
    axes.invert_yaxis()
    # The minimum is 1: jobs that did not wait.
    axes.set_xscale("log")
    axes.set_xlim(left=1)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel(f"mean bounded slowdown (bound {BOUND_S:.0f} s)")
    figure.legend(loc="outside upper center", ncols=len(NAMES), title="size of the job", fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    results = batkube.ExperimentResults(options.out)
    head = ["scheduler", "makespan s", "mean wait s", "p95", "longest", *(f"slowdown {name}" for name in NAMES)]
    print("|", " | ".join([*head, "utilisation %", "fairness", "CPU s"]), "|")
    print("|---" * (len(head) + 3) + "|")
    rows = {}
    for one in results.runs:
        label, run = one["axes"]["scheduler"], results.run(one["run"])
        print(row(label, run, results.failures.get(one["run"], "")))
        if one["run"] not in results.failures:
            rows[label] = slowdowns(run.jobs)
    if options.figure is not None:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
