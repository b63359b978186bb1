"""Gantt charts with a time slider."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batkube.outputs.gantt import stepper

if TYPE_CHECKING:
    import pytest

    from conftest import Simulate

#: Two jobs on one machine: the second waits for the first.
JOBS = [{"id": "1", "subtime": 0, "res": 1, "profile": "d"}, {"id": "<2>", "subtime": 4, "res": 1, "profile": "d"}]
PROFILES = {"d": {"type": "delay", "delay": 10}}


def steps_in(page: str) -> dict[str, Any]:
    (content,) = re.findall(r'<script type="application/json" id="steps">(.*?)</script>', page, re.DOTALL)
    steps: dict[str, Any] = json.loads(content)
    return steps


def test_the_slider_has_a_step_at_each_change(simulate: Simulate, tmp_path: Path) -> None:
    run = simulate(JOBS, PROFILES, platform="1x1")

    page = run.animate().save(tmp_path / "run.html").read_text()

    assert steps_in(page)["instants"] == [
        [0.0, "0.0 s (0 s): 0 jobs waiting, utilisation 100.0%"],
        [0.5, "10.0 s (10 s): 0 jobs waiting, utilisation 100.0%"],
        [1.0, "20.0 s (20 s): 0 jobs waiting, utilisation 0.0%"],
    ]
    assert "job &lt;2&gt; (w0)" in page


def test_a_notebook_shows_the_page_in_a_sandboxed_frame(simulate: Simulate) -> None:
    animation = simulate(JOBS, PROFILES, platform="1x1").animate()

    frame = animation._repr_html_()

    assert frame.startswith('<iframe sandbox="allow-scripts" ')
    (frame_content,) = re.findall('srcdoc="([^"]*)"', frame)
    assert html.unescape(frame_content) == animation.html
    assert "default-src 'none'" in animation.html


def test_the_number_of_steps_is_limited(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepper, "MAX_STEPS", 5)
    jobs = [{"id": str(number), "subtime": number, "res": 1, "profile": "d"} for number in range(20)]

    instants = steps_in(simulate(jobs, PROFILES, platform="1x1").animate().html)["instants"]

    assert [share for share, _ in instants] == [0, 0.25, 0.5, 0.75, 1]
