"""Section of a run's report on its sources: programs, inputs, hashes, and the command that repeats the run."""

from __future__ import annotations

import json
import shlex
from typing import Any

from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.pages.markup import Child, element, join
from batkube.outputs.pages.page import Section, collapsible, definition_list, paragraph, verbatim
from batkube.outputs.report.citation import reference
from batkube.outputs.report.histories import histories_in, histories_list
from batkube.outputs.report.methods import RunFacts, methods_text
from batkube.outputs.report.run_details import inputs_table, programs_table


def sources_section(results: MeasuredRun) -> Section:
    """Return what was run, in enough detail to repeat it, as far as the manifest has it."""
    manifest = results.manifest
    if not manifest:
        remark = paragraph("There is no manifest.json beside the jobs, so it is unknown how they were run.")
        return Section("sources", "What was run", remark)
    parts = [definition_list(_manifest_facts(manifest))]
    command = [str(word) for word in manifest.get("command") or ()]
    if command:
        parts += [element("h3", "To repeat it"), verbatim(shlex.join(command))]
    programs = [program for program in manifest.get("programs") or () if isinstance(program, dict)]
    if programs:
        parts += [element("h3", "Scheduler programs"), programs_table(programs, _costs(manifest))]
    inputs = [(str(entry.get("path")), str(entry.get("sha256"))) for entry in manifest.get("inputs") or ()]
    if inputs:
        parts += [element("h3", "Input files"), inputs_table(inputs)]
    if (histories := histories_list(histories_in(manifest))) is not None:
        parts += [element("h3", "How the workloads were made"), histories]
    if manifest.get("scenario"):
        text = json.dumps(manifest["scenario"], indent=2, ensure_ascii=False)
        parts.append(collapsible("The whole scenario", verbatim(text)))
    if (manifest.get("scenario") or {}).get("workload"):
        text = methods_text([RunFacts(manifest, results.notes)])
        parts.append(collapsible("For the methods section of a paper", paragraph(text), verbatim(reference())))
    return Section("sources", "What was run", join(parts))


def _manifest_facts(manifest: dict[str, Any]) -> list[tuple[Child, Child]]:
    real = manifest.get("real") or {}
    facts: list[tuple[Child, Child]] = [
        ("Batkube", str(manifest.get("batkube", "–"))),
        ("scheduler", str(manifest.get("scheduler", "–"))),
        ("seed", str(manifest.get("seed", "–"))),
        ("resources", str(manifest.get("resources", "–"))),
        ("digest", element("code", str(manifest.get("digest", "–")))),
    ]
    if "run_s" in real:
        times = f"{real['run_s']:,.2f} s real, {real.get('cpu_s', 0):,.2f} s CPU of Batkube"
        facts.append(("cost", f"{times}, {real.get('peak_memory_bytes', 0) / 2**20:,.0f} MiB"))
    return facts


def _costs(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    costs = (manifest.get("real") or {}).get("programs") or []
    return [cost if isinstance(cost, dict) else {} for cost in costs]
