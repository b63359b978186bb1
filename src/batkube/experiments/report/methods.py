"""The methods paragraph of an experiment's runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from batkube.experiments.results.findings import Findings
from batkube.experiments.running.folder import DESCRIPTION_FILE
from batkube.kernel.errors import InputError
from batkube.outputs.files.manifest import read_manifest
from batkube.outputs.measures.run_data.run_files import RunFiles
from batkube.outputs.pages.markup import Markup
from batkube.outputs.pages.page import collapsible, paragraph, verbatim
from batkube.outputs.report.citation import reference
from batkube.outputs.report.methods import RunFacts, methods_text


def methods_fold(findings: Findings) -> Markup | None:
    """Return the collapsed paragraph on all runs; None if no run has results, or a run's folder is missing."""
    folders = [findings.run_folder(str(run.get("run"))) for run in findings.runs]
    if not all(map(read_manifest, folders)):
        return None
    runs, failed = run_facts_in(folders)
    if not runs:
        return None
    text = methods_text(runs, failed)
    return collapsible("For the methods section of a paper", paragraph(text), verbatim(reference()))


def run_facts_in(folders: Iterable[Path]) -> tuple[list[RunFacts], int]:
    """Return the runs in folders of runs or experiments, and the number of failed ones. Raises InputError."""
    runs, failed = [], 0
    for folder in folders:
        is_experiment = (folder / DESCRIPTION_FILE).is_file()
        for place in sorted((folder / "runs").iterdir()) if is_experiment else [folder]:
            manifest = read_manifest(place)
            if not manifest and is_experiment:
                continue
            if "scenario" not in manifest and "failure" not in manifest:
                problem = "is not the output of a simulated run"
                remedy = "use the --out of `batkube run` or `batkube experiment`"
                raise InputError(place, problem=problem, remedy=remedy)
            if manifest.get("result") == "failed":
                failed += 1
            else:
                runs.append(RunFacts(manifest, RunFiles(place).notes))
    return runs, failed
