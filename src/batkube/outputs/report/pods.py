"""Section of a run's report on pods that were not placed, or not at the first attempt, and why."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from batkube.outputs.measures.measured_run import MeasuredRun
from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup, element, join
from batkube.outputs.pages.page import Section, paragraph

_MAX_ROWS = 30
_EXAMPLES = 3
_NUMBER = re.compile(r"\d+")


def pods_section(results: MeasuredRun) -> Section | None:
    """Return which pods were never placed, placed after several attempts, or failed; None if pods are unknown."""
    if results.left_out("pods.csv"):
        remark = paragraph("The scenario's `outputs` left out pods.csv, so single pods are unknown.", class_="note")
        return Section("pods", "Pods not placed, and why", remark)
    pods = results.pods
    if pods.empty:
        return None
    never = pods[pods["scheduled"].isna()]
    retried = pods[pods["scheduled"].notna() & (pods["attempts"] > 1)]
    failed = pods[pods["scheduled"].notna() & (pods["phase"] == "Failed")]
    parts: list[Markup] = [paragraph(_summary(len(pods), len(never), len(retried), len(failed)))]
    for title, rows in (
        ("Never placed", never),
        ("Placed after several attempts", retried),
        ("Placed, and failed", failed),
    ):
        if len(rows):
            parts += [element("h3", title), _by_reason(rows)]
    return Section("pods", "Pods not placed, and why", join(parts))


def _summary(total: int, never: int, retried: int, failed: int) -> str:
    if not never and not retried and not failed:
        return f"All {total:,} pods were placed at the first attempt."
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (never, "were never placed"),
            (retried, "were placed after more than one attempt"),
            (failed, "were placed and failed"),
        )
        if count
    ]
    return f"Of {total:,} pods {', '.join(parts)}."


def _by_reason(pods: pd.DataFrame) -> Markup:
    """Return a row per reason; reasons that differ only in their numbers share a row, with the first one's text."""
    by_kind = pods.assign(kind=[_NUMBER.sub("#", text) for text in pods["last_reason"]])
    groups = [(rows, len(rows)) for _, rows in by_kind.groupby("kind", sort=False)]
    groups.sort(key=lambda group: -group[1])
    heads = [
        Heading("last reason"),
        Heading("pods", is_number=True),
        Heading("attempts", "at most", is_number=True),
    ]
    heads += [Heading("longest wait", "s", is_number=True), Heading("for example")]
    lines: list[list[Any]] = []
    for rows, count in groups[:_MAX_ROWS]:
        wait = float((rows["scheduled"].fillna(rows["finished"]) - rows["created"]).max())
        attempts = float(rows["attempts"].max())
        lines.append(
            [
                str(rows["last_reason"].iloc[0]) or "(none given)",
                Cell(f"{count:,}", float(count)),
                Cell("–") if attempts != attempts else Cell(f"{attempts:,.0f}", attempts),
                Cell("–") if wait != wait else Cell(f"{wait:,.2f}", wait),
                ", ".join(rows["pod"].head(_EXAMPLES)) + (" …" if count > _EXAMPLES else ""),
            ]
        )
    left = len(groups) - len(lines)
    note = paragraph(f"{left:,} rarer reasons are left out; pods.csv has all.", class_="note") if left else None
    return join((html_table(heads, lines), note))
