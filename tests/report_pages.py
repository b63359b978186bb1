"""A strict reader of report pages, and hand-written folders of experiments."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_VOID = ("br", "hr", "img", "input", "link", "meta", "col", "wbr")
_ADDRESS = re.compile(r"(?:https?:)?//|url\((?!#)|@import", re.IGNORECASE)


@dataclass
class Page:
    """The content of a page, and its problems."""

    text: str = ""
    tags: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    #: The text of every cell, row by row, of every table.
    tables: list[list[list[str]]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "table":
            self.page.tables.append([])
        elif tag == "tr":
            self.page.tables[-1].append([])
        elif tag in ("td", "th"):
            self.page.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.page.problems.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if "script" in self._open or "style" in self._open:
            return
        self.page.text += data
        if any(tag in self._open for tag in ("td", "th")):
            self.page.tables[-1][-1][-1] += data

    def close(self) -> None:
        super().close()
        if self._open:
            self.page.problems.append(f"never closed: {self._open}")

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.tags.append(tag)
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.page.problems.append(f"<{tag}> has an attribute duplicates")
        for name, value in attrs:
            if name == "id":
                self.page.ids.append(value or "")
            if name.startswith("on") or name in ("src", "srcset", "action", "formaction"):
                self.page.problems.append(f"<{tag}> has {name}={value}")
            if name.endswith("href"):
                self.page.links.append(value or "")
            if name == "style" and _ADDRESS.search(value or ""):
                self.page.problems.append(f"<{tag}> makes a request: {value}")


def read_page(html: str) -> Page:
    """Read a page, and collect problems: elements not closed in order, duplicate ids, links that leave the page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    page = reader.page
    if len(set(page.ids)) < len(page.ids):
        duplicates = sorted({name for name in page.ids if page.ids.count(name) > 1})
        page.problems.append(f"names given duplicates: {duplicates[:5]}")
    for link in page.links:
        if not link.startswith(("#", "data:image/png;base64,")):
            page.problems.append(f"links to {link}")
        elif link.startswith("#") and link[1:] not in page.ids:
            page.problems.append(f"links to {link}, which does not exist")
    return page


def write_experiment(
    folder: Path,
    axes: Mapping[str, Sequence[str]],
    runs: Sequence[Mapping[str, Any]],
    *,
    figures: Sequence[Mapping[str, Any]] = (),
    **description: Any,  # noqa: ANN401 - keys of experiment.json
) -> Path:
    """Write the folder of an experiment.

    Each run has a label for each axis and optionally seed, repeat, state, digest, failure, real_s and columns of
    results.csv.
    """
    folder.mkdir(parents=True, exist_ok=True)
    not_in_csv = ("digest", "failure", "real_s", "programs")
    rows, times, entries = [], [], []
    for number, run in enumerate(runs):
        name = f"run-{number}"
        cells = {"run": name, "seed": 0, "repeat": 1, "state": "done", **run}
        rows.append({key: value for key, value in cells.items() if key not in not_in_csv})
        times.append({"run": name, "real_s": run.get("real_s", "")})
        entries.append(
            {
                "run": name,
                "axes": {axis: run[axis] for axis in axes},
                "seed": cells["seed"],
                "repeat": cells["repeat"],
                "state": cells["state"],
                "digest": run.get("digest", f"digest-{number}"),
                "programs": run.get("programs", []),
                "failure": run.get("failure"),
            }
        )
    columns = dict.fromkeys(key for row in rows for key in row)
    header = dict.fromkeys(["run", *axes, "seed", "repeat", "state", *columns])
    _write(folder / "results.csv", list(header), rows)
    _write(folder / "timings.csv", ["run", "real_s"], times)
    content = {
        "batkube": "0.1.0",
        "title": "A study",
        "description": "The question.",
        "command": ["batkube", "experiment", "study.yaml", "--out", "out"],
        "file": str(folder / "study.yaml"),
        "base": {"workload": "w.json"},
        "axes": [{"name": name, "values": list(labels)} for name, labels in axes.items()],
        "seeds": [0],
        "repeats": 1,
        "figures": list(figures),
        "inputs": {"w.json": "ab" * 32},
        "total": len(runs),
        "runs": entries,
    }
    (folder / "experiment.json").write_text(json.dumps({**content, **description}))
    return folder


def _write(path: Path, header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, header, restval="")
        writer.writeheader()
        writer.writerows(rows)
