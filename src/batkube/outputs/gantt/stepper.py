"""Gantt chart with a time slider, which covers the part of the chart after the selected instant.

The page contains one drawing, so it is hardly larger than the chart. A notebook shows it in a sandboxed frame, so that
its script can access nothing else.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import numpy as np

from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.files.derived_files import write_derived_file
from batkube.outputs.gantt.figure import chart_area
from batkube.outputs.gantt.html_page import chart_document, with_hover_texts
from batkube.outputs.gantt.model import GanttModel
from batkube.outputs.measures.occupancy.stays import Floats

#: If more instants have changes, the slider uses this many evenly spaced ones.
MAX_STEPS = 2_000

_SCRIPT = """
const steps = JSON.parse(document.getElementById("steps").textContent);
const slider = document.getElementById("slider"), cover = document.getElementById("cover");
const words = document.getElementById("words"), button = document.getElementById("play");
let timer = null;
function show() {
  const [share, text] = steps.instants[slider.value];
  cover.style.left = 100 * (steps.left + steps.width * share) + "%";
  cover.style.width = 100 * steps.width * (1 - share) + "%";
  words.textContent = text;
}
function stop() { clearInterval(timer); timer = null; button.textContent = "play"; }
function play() {
  if (timer) { stop(); return; }
  if (+slider.value >= +slider.max) slider.value = 0;
  button.textContent = "stop";
  timer = setInterval(() => {
    slider.value = Math.min(+slider.max, +slider.value + Math.ceil(slider.max / 300));
    show();
    if (+slider.value >= +slider.max) stop();
  }, 50);
}
slider.addEventListener("input", () => { stop(); show(); });
button.addEventListener("click", play);
show();
"""

_STYLE = """margin: 0 auto; padding: 0.5rem; }
#chart { position: relative; }
svg { width: 100%; height: auto; display: block; }
svg .hover rect { fill: transparent; }
#cover { position: absolute; background: #fff; opacity: 0.93; border-left: 2px solid #b4442e; pointer-events: none; }
#controls { display: flex; gap: 0.8rem; align-items: center; }
#slider { flex: 1; }
#words { font-variant-numeric: tabular-nums; }"""
_BODY = """<div id="controls"><button id="play" type="button">play</button>
<input id="slider" type="range" min="0" max="{last}" value="0" aria-label="instant"></div>
<div id="words"></div>
<div id="chart">{svg}<div id="cover" style="top: {top:.4%}; height: {height:.4%}"></div></div>
<script type="application/json" id="steps">{steps}</script>
<script>{script}</script>"""


class Stepper:
    """The page with the slider; a notebook shows it, and `save` writes it."""

    def __init__(self, model: GanttModel, svg: str) -> None:
        area, instants = chart_area(model), _instants(model)
        steps = {"left": area.left, "width": area.width, "instants": instants}
        body = _BODY.format(
            svg=with_hover_texts(model, svg),
            last=len(instants) - 1,
            top=area.top,
            height=area.height,
            # A `</script>` in a label must not close the element.
            steps=json.dumps(steps).replace("<", "\\u003c"),
            script=_SCRIPT,
        )
        self.html = chart_document(model.title, _STYLE, body, _SCRIPT)

    def save(self, path: str | Path) -> Path:
        """Write the page, and return its path."""
        write_derived_file(Path(path), self.html.encode())
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the page for a notebook, in a sandboxed frame."""
        style = "width: 100%; height: 46rem; border: 0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def _instants(model: GanttModel) -> list[tuple[float, str]]:
    """Return the instants at which anything changes, each with its position from 0 to 1 and its description."""
    times = _step_times(model)
    waiting, busy = model.queue.at(times), model.utilisation.at(times)
    length = model.end_s - model.start_s
    return [
        (
            round((time - model.start_s) / length, 6),
            f"{time:,.1f} s ({human_duration(seconds(time))}): {int(jobs):,} jobs waiting, utilisation {share:.1%}",
        )
        for time, jobs, share in zip(times.tolist(), waiting.tolist(), busy.tolist(), strict=True)
    ]


def _step_times(model: GanttModel) -> Floats:
    """Return the times at which boxes begin and end, or evenly spaced ones if these are too many."""
    changes = np.union1d(model.boxes.left, model.boxes.right)
    inside = changes[(changes > model.start_s) & (changes < model.end_s)]
    if len(inside) > MAX_STEPS:
        return np.linspace(model.start_s, model.end_s, MAX_STEPS)
    return np.concatenate(([model.start_s], inside, [model.end_s]))
