"""The tables of an experiment for a paper: means with intervals, and differences, as LaTeX and as CSV.

They say what the report says, from the same samples. A table of a paper has little room, so the columns can be chosen.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from batkube.experiments.description.columns import number_columns
from batkube.experiments.figures.numbers import mean_and_spread
from batkube.experiments.report.differences import ONE_SIGN, SURE, comparisons, differences_of, signs_of
from batkube.experiments.report.grid_points import (
    ALIKE,
    BEST,
    OTHER_SEEDS,
    best_of,
    grid_points,
    have_other_seeds,
    meaning_of_best,
    standings_of,
)
from batkube.experiments.report.results import columns_with_numbers
from batkube.experiments.results.findings import Findings, read_findings
from batkube.kernel.spelling import check_names
from batkube.outputs.files.products import write_product
from batkube.outputs.measures.intervals import Sample
from batkube.outputs.measures.number_columns import Column, column_of
from batkube.outputs.measures.standings import unfair
from batkube.outputs.pages.latex import SIGNS, escaped, explained, number, tabular

#: Real times are of no interest in a paper's table of results, unless they are asked for.
_UNASKED = ("real_s",)
#: Columns of differences.csv: in how many pairs it is lower, or higher, and how likely that is by chance; whether the
#: interval leaves out 0, looked at by itself, and among all of its column.
_PAIRS, _CLEAR = ("pairs", "lower", "higher", "sign_test_p"), ("is_clear", "is_clear_among_all")
_DIFFERENCE = ("less", "column", *_PAIRS, "difference", "low", "high", *_CLEAR)


def write_paper_tables(folder: Path, target: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write results and differences of an experiment into the folder `target`; of the columns `names`, or the usual."""
    findings = read_findings(folder)
    known = (*number_columns(), *(name for name in findings.frame if str(name).startswith("utilisation_")))
    check_names(names, [str(name) for name in known], "--columns", "", "a column of numbers")
    usual = [column for column in columns_with_numbers(findings) if column.name not in _UNASKED]
    columns = [column_of(name) for name in names] or usual
    contents = {
        "results.tex": _results_latex(findings, columns),
        "results.csv": _results_csv(findings, columns),
        "differences.tex": _differences_latex(findings, columns),
        "differences.csv": _differences_csv(findings, columns),
    }
    written = [target / name for name, text in contents.items() if text]
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_product(path, contents[path.name].encode())
    return written


def _heading(column: Column) -> str:
    unit = f" ({escaped(column.unit)})" if column.unit else ""
    return escaped(column.label) + unit


def _mean(sample: Sample | None, column: Column, *, signs: str = "", plus: bool = False) -> str:
    """Return a mean and its interval as LaTeX, with signs that take no room, so that numbers stay in line."""
    if sample is None:
        return "--"
    mean, spread = mean_and_spread(sample, column)
    mean = f"+{mean}" if plus and sample.mean > 0 else mean
    words = " ".join("$\\pm$" if word == "±" else number(word) for word in spread.split())
    return (
        number(mean)
        + (f" {words}" if words else "")
        + (rf"\rlap{{{''.join(SIGNS[one] for one in signs)}}}" if signs else "")
    )


def _results_latex(findings: Findings, columns: Sequence[Column]) -> str:
    points = grid_points(findings, columns)
    best = {column.name: best_of(points, column) for column in columns}
    axes = list(findings.axes)
    heads = [*(escaped(axis.replace("_", " ")) for axis in axes), "$n$", *map(_heading, columns)]
    rows = []
    for place, point in enumerate(points):
        cells = [escaped(point.labels[axis]) for axis in axes]
        cells.append(point.count_told)
        cells += [_mean(point.samples.get(column.name), column, signs=best[column.name][place]) for column in columns]
        rows.append(cells)
    meanings = {BEST: meaning_of_best(points), ALIKE: "no clear difference to the best"}
    meanings |= {one.sign: one.meaning for one in unfair(standings_of(points))}
    marks = [mark for of_column in best.values() for mark in of_column]
    notes = [explained(sign, meaning) for sign, meaning in meanings.items() if sign in marks]
    notes += [escaped(OTHER_SEEDS)] if have_other_seeds(points) else []
    remark = "Means over n runs, with half the 95 % confidence interval (Student) where n is more than 1."
    return tabular(heads, rows, texts=len(axes), remark=remark, notes=notes)


def _results_csv(findings: Findings, columns: Sequence[Column]) -> str:
    """Return a row per point and column, unrounded and in the units of results.csv."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*findings.axes, "column", "n", "mean", "sd", "low", "high", "standing"])
    points = grid_points(findings, columns)
    for point, standing in zip(points, standings_of(points), strict=True):
        for column in columns:
            sample = point.samples.get(column.name)
            if sample is not None:
                numbers = [
                    sample.mean,
                    sample.sd,
                    *((sample.low, sample.high) if sample.has_interval else (None, None)),
                ]
                cells = ["" if one is None else repr(one / column.factor) for one in numbers]
                labels = list(point.labels.values())
                writer.writerow([*labels, column.name, sample.n, *cells, standing.name.lower()])
    return out.getvalue()


def _differences_latex(findings: Findings, columns: Sequence[Column]) -> str:
    chosen = [column for column in columns if column.better]
    found = differences_of(findings, chosen)
    if not found:
        return ""
    axes = list(findings.axes)
    heads = [*(escaped(axis.replace("_", " ")) for axis in axes), "less", "pairs", *map(_heading, chosen)]
    rows, marks = [], [""]
    counts = comparisons(found)
    for row in found:
        cells = [*map(escaped, row.labels.values()), escaped(row.less), str(row.pairs or "--")]
        for column, difference, count in zip(chosen, row.differences, counts, strict=True):
            if difference is None:
                cells.append("--")
                continue
            marks.append(signs := signs_of(difference, count))
            text = _mean(difference.sample, column, signs=signs, plus=True)
            cells.append(rf"\boldmath {text}" if difference.is_clear else text)
        rows.append(cells)
    remark = "Mean of the differences seed by seed, with half its 95 % confidence interval."
    notes = ["bold: the interval leaves out 0"]
    if max(counts) > 1:
        notes.append(explained(SURE, f"also where all {max(counts)} of a column are to hold at once (Bonferroni)"))
    if any(ONE_SIGN in signs for signs in marks):
        notes.append(explained(ONE_SIGN, "pairs agree in which one is lower (exact sign test, p < 0.05)"))
    return tabular(heads, rows, texts=len(axes) + 1, remark=remark, notes=notes)


def _differences_csv(findings: Findings, columns: Sequence[Column]) -> str:
    chosen = [column for column in columns if column.better]
    rows = differences_of(findings, chosen)
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*findings.axes, *_DIFFERENCE])
    for row in rows:
        for column, difference, count in zip(chosen, row.differences, comparisons(rows), strict=True):
            if difference is not None:
                ends = (difference.value, difference.value - difference.half, difference.value + difference.half)
                numbers = [repr(one / column.factor) for one in ends]
                counted = (difference.pairs, difference.lower, difference.higher, repr(difference.sign_p))
                pairs = counted if difference.pairs else ("",) * len(_PAIRS)
                clear = [int(difference.is_clear), int(difference.is_clear_among(count))]
                writer.writerow([*row.labels.values(), row.less, column.name, *pairs, *numbers, *clear])
    return out.getvalue()
