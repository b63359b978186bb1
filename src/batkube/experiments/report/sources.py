"""Sections of an experiment's report on its sources (versions, hashes, seeds, digests, command) and its statistics."""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import Any

from batkube.experiments.figures.chart_data import without_duplicates
from batkube.experiments.report.methods import methods_fold
from batkube.experiments.report.results import columns_with_numbers
from batkube.experiments.results.findings import Findings
from batkube.outputs.measures.explanations import column_explanations
from batkube.outputs.pages.markup import element, join
from batkube.outputs.pages.page import Section, collapsible, definition_list, paragraph, verbatim
from batkube.outputs.report.histories import histories_in, histories_list
from batkube.outputs.report.run_details import inputs_table, programs_table


def sources_section(findings: Findings) -> Section:
    """Return what was run, in enough detail to repeat it."""
    description = findings.description
    programs = _programs(findings)
    inputs = [(str(path), str(digest)) for path, digest in (description.get("inputs") or {}).items()]
    parts = [definition_list(_experiment_facts(findings))]
    command = description.get("command") or []
    if command:
        line = command if isinstance(command, str) else shlex.join(str(word) for word in command)
        parts += [element("h3", "To repeat it"), verbatim(line)]
        parts.append(paragraph("Finished runs are not repeated; --force repeats them.", class_="note"))
    if programs:
        parts += [element("h3", "Programs"), programs_table(programs)]
    if inputs:
        parts += [element("h3", "Input files"), inputs_table(inputs)]
    histories = histories_list(entry for run in findings.runs for entry in histories_in(findings.manifest(run)))
    if histories is not None:
        parts += [element("h3", "How the workloads were made"), histories]
    base = description.get("base")
    if base:
        text = json.dumps(base, indent=2, ensure_ascii=False)
        parts.append(collapsible("The scenario that all runs have in common", verbatim(text)))
    methods = methods_fold(findings)
    if methods is not None:
        parts.append(methods)
    return Section("sources", "What was run", join(parts))


def method_section(findings: Findings) -> Section:
    """Return how the numbers are computed."""
    run_count = len(without_duplicates(findings.frame[findings.frame["state"] == "done"], list(findings.axes)))
    parts = [
        paragraph(" ".join(column_explanations(column.name for column in columns_with_numbers(findings)))),
        paragraph(
            "The interval of a mean is m ± t·s/√n: s is the standard deviation of the n runs (divided by n − 1), t the "
            "97.5 % quantile of Student's distribution with n − 1 degrees of freedom (12.71 for two runs, 2.78 for "
            "five, 2.26 for ten). It assumes that runs are independent, which requires that their seeds have an "
            "effect, and that their numbers are roughly normally distributed. It shows how precisely the mean is "
            "known, not where single runs lie."
        ),
        paragraph(
            "A run that is byte-identical to another of its row is not another observation, whatever its seed: "
            f"{run_count:,} of {len(findings.runs):,} runs count. Measured real times differ between identical runs, "
            "so for them every run counts."
        ),
        paragraph(
            "Runs of one seed had the same workload and the same random numbers, so two rows are compared seed by "
            "seed: the difference is the mean of the pairs' differences, with Student's interval. Rows that share "
            "fewer than two seeds are compared with Welch's interval, which does not assume equal variances. Two means "
            "are called different if the 95 % interval of their difference excludes 0, or the sign test shows one. "
            "Among many comparisons, one in twenty does so by chance, so the table of differences also marks those "
            "that remain if all intervals of a column have to hold at once (Bonferroni: each at 1 − 0.05/k for k of "
            "them). Few and skewed differences "
            "have wide intervals; the sign test only counts the pairs in which a row is lower, and shows a direction, "
            "not a size. Windows drawn from a trace may overlap, and are then less independent than their number "
            "suggests; a remark below the table says so. Shares of runs have Wilson's interval."
        ),
        paragraph("Runs that failed have no numbers. A number that is unknown is a dash, never a guess."),
    ]
    return Section("method", "How the numbers are computed", join(parts))


def _experiment_facts(findings: Findings) -> list[tuple[str, Any]]:
    description = findings.description
    seeds = [int(seed) for seed in description.get("seeds") or ()]
    digests = sorted(f"{run.get('run')}={run.get('digest')}" for run in findings.runs)
    digest = hashlib.sha256("\n".join(digests).encode()).hexdigest()
    facts: list[tuple[str, Any]] = [("Batkube", str(description.get("batkube", "")))]
    facts.append(("experiment file", str(description.get("file", ""))))
    facts += [(name.replace("_", " "), ", ".join(labels)) for name, labels in findings.axes.items()]
    if seeds:
        facts.append(("seeds", _ranges(seeds)))
    facts.append(("repeats", str(description.get("repeats") or 1)))
    facts.append(("digest of all runs", element("code", digest)))
    return facts


def _ranges(seeds: list[int]) -> str:
    consecutive = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if consecutive else ", ".join(str(seed) for seed in seeds)


def _programs(findings: Findings) -> list[dict[str, Any]]:
    """Return the different programs of all runs, each once."""
    programs: dict[str, dict[str, Any]] = {}
    for run in findings.runs:
        for program in run.get("programs") or ():
            programs.setdefault(f"{program.get('name')} {program.get('sha256')}", program)
    return list(programs.values())
