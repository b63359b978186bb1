"""The manifest and the jobs of a run, and its report."""

from __future__ import annotations

from typing import Any

from batkube.outputs.report.document import run_report
from batkube.outputs.results import Results
from report_pages import Page, read_page

MANIFEST: dict[str, Any] = {
    "batkube": "0.1.0",
    "command": ["batkube", "run", "--workload", "my jobs.json"],
    "scenario": {"seed": 7},
    "scheduler": "kube-scheduler@1.34.4",
    "resources": "machines",
    "seed": 7,
    "inputs": [{"path": "my jobs.json", "sha256": "cd" * 32}],
    "platform": {"machines": [{"name": "node-0", "cpu_milli": 1000}, {"name": "node-1", "cpu_milli": 1000}]},
    "jobs": 3,
    "result": "completed",
    "failure": None,
    "digest": "0123456789abcdef",
    "programs": [
        {"name": "kube-scheduler", "version": "v1.34.4", "serves": ["default-scheduler"], "sha256": "ef" * 32}
    ],
    "real": {
        "run_s": 1.5,
        "cpu_s": 0.5,
        "peak_memory_bytes": 2**25,
        "programs": [{"cpu_s": 0.75, "peak_memory_bytes": 2**26}],
    },
}


ROWS = [
    ("1", 0, 0, 100, "0", {"user": "ada"}),
    ("2", 0, 0, 50, "1", {"user": "bob"}),
    ("3", 0, 100, 300, "0-1", {"user": "bob"}),
]


def page_of(results: Results) -> Page:
    page = read_page(run_report(results))
    assert page.problems == []
    return page
