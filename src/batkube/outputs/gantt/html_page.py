"""Gantt chart as a self-contained web page: the SVG, a summary table, and details of each box on hover."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.gantt.figure import box_outlines_pt
from batkube.outputs.gantt.model import MAX_VECTOR_BOXES, GanttModel
from batkube.outputs.measures.comparisons.run_comparison import metric_rows
from batkube.outputs.measures.occupancy.services import SERVICE_STATE
from batkube.outputs.pages.page import content_security_policy

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; {style}
</style>
</head>
<body>
{body}
</body>
</html>
"""
#: The style continues the rule of `body`.
_STYLE = """margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; }
svg .hover rect { fill: transparent; }
svg .hover rect:hover { fill: #000; fill-opacity: 0.18; }
table { border-collapse: collapse; margin-top: 1.5rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.3rem; }
td, th { padding: 0.15rem 1.2rem 0.15rem 0; border-bottom: 1px solid #e4e4e4; text-align: left; font-weight: normal; }
td { text-align: right; }
td:last-child { text-align: left; color: #666; }"""


def chart_document(title: str, style: str, body: str, script: str | None = None) -> str:
    """Return an HTML document with a chart; `style` continues the rule of `body`. Only `script` may be executed."""
    policy = content_security_policy() if script is None else content_security_policy(script)
    return _PAGE.format(policy=policy, title=escape(title), style=style, body=body)


def gantt_page(model: GanttModel, svg: str) -> str:
    """Return the page with the chart and the summary."""
    inline = with_hover_texts(model, svg)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(row.name)}</th><td>{escape(row.text)}</td><td>{escape(row.unit)}</td></tr>'
        for row in metric_rows(model.metrics)
        if row.value is not None
    )
    return chart_document(model.title, _STYLE, f"{inline}\n<table>\n<caption>Summary</caption>\n{rows}\n</table>")


def with_hover_texts(model: GanttModel, svg: str) -> str:
    """Return the SVG element, with details of each job on hover unless there are too many boxes."""
    # HTML does not allow the XML declaration and the DOCTYPE that precede the <svg> element.
    inline = svg[svg.index("<svg") :].rstrip()
    if len(model.boxes) > MAX_VECTOR_BOXES:
        return inline
    return inline.removesuffix("</svg>") + _hover_texts(model) + "</svg>"


def _hover_texts(model: GanttModel) -> str:
    """Return invisible rectangles over the boxes; browsers show an element's <title> on hover."""
    subjects = model.subjects
    text_by_row = {int(row): _job_text(subjects.iloc[int(row)]) for row in dict.fromkeys(model.boxes.job.tolist())}
    rectangles = [
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}">'
        f"<title>{'lost attempt of ' if lost else ''}{escape(text_by_row[job])}</title></rect>"
        for job, lost, (x, y, width, height) in zip(
            model.boxes.job.tolist(), model.boxes.lost, box_outlines_pt(model).tolist(), strict=True
        )
    ]
    return '<g class="hover">\n' + "\n".join(rectangles) + "\n</g>\n"


def _job_text(job: pd.Series[Any]) -> str:
    if job["final_state"] == SERVICE_STATE:
        return f"pod of {job['profile']} {job['job_id']}" if job["profile"] != "Pod" else f"pod {job['job_id']}"

    def length(column: str) -> str:
        return human_duration(seconds(float(job[column])))

    lines = [f"job {job['job_id']} ({job['workload_name']})"]
    lines += [f"{label} {job[column]}" for label, column in (("user", "user"), ("profile", "profile")) if job[column]]
    lines.append(f"submitted at {length('submission_time')}")
    if not pd.isna(job.get("admitted_time")):
        lines.append(f"admitted by its scheduler at {length('admitted_time')}")
    if job.get("member_wait", 0) > 0:
        lines.append(f"held nodes for {length('member_wait')} while other pods of the job had none")
    if not pd.isna(job["evictions"]) and job["evictions"] > 0:
        lines.append(f"evictions {job['evictions']:.0f}")
    if pd.isna(job["starting_time"]):
        lines.append("never completed")
    elif pd.isna(job["finish_time"]):
        lines.append(f"waited {length('waiting_time')}, started at {length('starting_time')}, not finished")
    else:
        lines.append(f"waited {length('waiting_time')}, ran {length('execution_time')}")
        lines.append(f"from {length('starting_time')} to {length('finish_time')}")
    lines.append(f"on machines {job['allocated_resources']}")
    lines.append(str(job["final_state"]))
    return "\n".join(lines)
