"""The tables of an experiment for a paper: means with intervals, and differences, as LaTeX and as CSV.

They have the same numbers as the report. A table in a paper has little space, so the columns can be selected.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from batkube.experiments.description.columns import number_columns
from batkube.experiments.figures.number_format import format_mean_and_interval
from batkube.experiments.report.differences import SIGN_TEST, SIGNIFICANT, comparison_counts, differences_of, signs_of
from batkube.experiments.report.grid_points import (
    BEST,
    DIFFERENT_SEEDS,
    MEANINGS_OF_MARKS,
    comparability_of_points,
    grid_points,
    have_different_seeds,
    marks_of_best,
    meaning_of_best,
)
from batkube.experiments.report.results import columns_with_numbers
from batkube.experiments.results.findings import Findings, read_findings
from batkube.outputs.files.derived_files import write_derived_file
from batkube.outputs.measures.comparisons.comparability import Comparability, not_comparable
from batkube.outputs.measures.intervals import Sample
from batkube.outputs.measures.metric_columns import MetricColumn, column_of
from batkube.outputs.pages.latex import LATEX_SIGNS, escape, footnote, math_number, tabular
from batkube.text.suggestions import check_names

#: Real times are left out of a paper's table by default.
_EXCLUDED_COLUMNS = ("real_s",)
#: Columns of differences.csv: number of pairs in which it is lower, or higher, and p of the sign test; whether the
#: interval excludes 0, by itself and among all of its column.
_PAIRS, _CLEAR = ("pairs", "lower", "higher", "sign_test_p"), ("is_clear", "is_clear_among_all")
_DIFFERENCE = ("less", "column", *_PAIRS, "difference", "low", "high", *_CLEAR)
#: Values of the column `standing` of results.csv.
_COMPARABILITY_NAMES = {
    Comparability.COMPARABLE: "fair",
    Comparability.FEWER_JOBS: "short",
    Comparability.FAILED_RUNS: "partial",
    Comparability.VIOLATIONS: "void",
}


def write_paper_tables(
    folder: Path, target: Path, names: Sequence[str] = (), baseline: Mapping[str, str] | None = None
) -> list[Path]:
    """Write results and differences of an experiment into `target`, for the columns `names` or the default ones."""
    findings = read_findings(folder, baseline)
    valid = (*number_columns(), *(name for name in findings.frame if str(name).startswith("utilisation_")))
    check_names(names, [str(name) for name in valid], "--columns", "", "a column of numbers")
    default = [column for column in columns_with_numbers(findings) if column.name not in _EXCLUDED_COLUMNS]
    columns = [column_of(name) for name in names] or default
    contents = {
        "results.tex": _results_latex(findings, columns),
        "results.csv": _results_csv(findings, columns),
        "differences.tex": _differences_latex(findings, columns),
        "differences.csv": _differences_csv(findings, columns),
    }
    written = [target / name for name, text in contents.items() if text]
    for path in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_derived_file(path, contents[path.name].encode())
    return written


def _heading(column: MetricColumn) -> str:
    unit = f" ({escape(column.unit)})" if column.unit else ""
    return escape(column.label) + unit


def _mean(sample: Sample | None, column: MetricColumn, *, signs: str = "", plus: bool = False) -> str:
    """Return a mean and its interval as LaTeX, with signs of zero width, so that numbers stay aligned."""
    if sample is None:
        return "--"
    mean, spread = format_mean_and_interval(sample, column)
    mean = f"+{mean}" if plus and sample.mean > 0 else mean
    words = " ".join("$\\pm$" if word == "±" else math_number(word) for word in spread.split())
    return (
        math_number(mean)
        + (f" {words}" if words else "")
        + (rf"\rlap{{{''.join(LATEX_SIGNS[sign] for sign in signs)}}}" if signs else "")
    )


def _results_latex(findings: Findings, columns: Sequence[MetricColumn]) -> str:
    points = grid_points(findings, columns)
    best = {column.name: marks_of_best(points, column) for column in columns}
    axes = list(findings.axes)
    headings = [*(escape(axis.replace("_", " ")) for axis in axes), "$n$", *map(_heading, columns)]
    rows = []
    for place, point in enumerate(points):
        cells = [escape(point.labels[axis]) for axis in axes]
        cells.append(point.count_text)
        cells += [_mean(point.samples.get(column.name), column, signs=best[column.name][place]) for column in columns]
        rows.append(cells)
    meanings = {BEST: meaning_of_best(points), **MEANINGS_OF_MARKS}
    meanings |= {
        comparability.sign: comparability.meaning for comparability in not_comparable(comparability_of_points(points))
    }
    marks = [mark for of_column in best.values() for mark in of_column]
    notes = [footnote(sign, meaning) for sign, meaning in meanings.items() if sign in marks]
    notes += [escape(DIFFERENT_SEEDS)] if have_different_seeds(points) else []
    remark = "Means over n runs, with half the 95 % confidence interval (Student) if n is more than 1."
    return tabular(headings, rows, texts=len(axes), remark=remark, notes=notes)


def _results_csv(findings: Findings, columns: Sequence[MetricColumn]) -> str:
    """Return a row per point and column, unrounded and in the units of results.csv."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*findings.axes, "column", "n", "mean", "sd", "low", "high", "standing"])
    points = grid_points(findings, columns)
    for point, comparability in zip(points, comparability_of_points(points), strict=True):
        for column in columns:
            sample = point.samples.get(column.name)
            if sample is not None:
                numbers = [
                    sample.mean,
                    sample.sd,
                    *((sample.low, sample.high) if sample.has_interval else (None, None)),
                ]
                cells = ["" if number is None else repr(number / column.factor) for number in numbers]
                labels = list(point.labels.values())
                writer.writerow([*labels, column.name, sample.n, *cells, _COMPARABILITY_NAMES[comparability]])
    return out.getvalue()


def _differences_latex(findings: Findings, columns: Sequence[MetricColumn]) -> str:
    selected = [column for column in columns if column.better]
    differences = differences_of(findings, selected)
    if not differences:
        return ""
    axes = list(findings.axes)
    headings = [*(escape(axis.replace("_", " ")) for axis in axes), "less", "pairs", *map(_heading, selected)]
    rows, marks = [], [""]
    counts = comparison_counts(differences)
    for row in differences:
        cells = [*map(escape, row.labels.values()), escape(row.subtracted), str(row.pairs or "--")]
        for column, difference, count in zip(selected, row.differences, counts, strict=True):
            if difference is None:
                cells.append("--")
                continue
            marks.append(signs := signs_of(difference, count))
            text = _mean(difference.sample, column, signs=signs, plus=True)
            cells.append(rf"\boldmath {text}" if difference.is_clear else text)
        rows.append(cells)
    remark = "Mean of the differences seed by seed, with half its 95 % confidence interval."
    notes = ["bold: the interval excludes 0"]
    if max(counts) > 1:
        notes.append(footnote(SIGNIFICANT, f"also if all {max(counts)} of a column have to hold at once (Bonferroni)"))
    if any(SIGN_TEST in signs for signs in marks):
        notes.append(footnote(SIGN_TEST, "pairs agree on which one is lower (exact sign test, p < 0.05)"))
    return tabular(headings, rows, texts=len(axes) + 1, remark=remark, notes=notes)


def _differences_csv(findings: Findings, columns: Sequence[MetricColumn]) -> str:
    selected = [column for column in columns if column.better]
    rows = differences_of(findings, selected)
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*findings.axes, *_DIFFERENCE])
    for row in rows:
        for column, difference, count in zip(selected, row.differences, comparison_counts(rows), strict=True):
            if difference is not None:
                ends = (difference.value, difference.value - difference.half, difference.value + difference.half)
                numbers = [repr(end / column.factor) for end in ends]
                counted = (difference.pairs, difference.lower, difference.higher, repr(difference.sign_p))
                pairs = counted if difference.pairs else ("",) * len(_PAIRS)
                clear = [int(difference.is_clear), int(difference.is_clear_among(count))]
                writer.writerow([*row.labels.values(), row.subtracted, column.name, *pairs, *numbers, *clear])
    return out.getvalue()
