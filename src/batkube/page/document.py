"""The page as one HTML document: style, script, data, and a content security policy that forbids other requests."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.outputs.measures.comparisons.run_labels import labels_of
from batkube.outputs.pages.colours import DARK, LIGHT
from batkube.outputs.pages.markup import element, trusted
from batkube.outputs.pages.page import content_security_policy
from batkube.outputs.playback.playback import Playback
from batkube.page.columns import ColumnEncoder, resources_of
from batkube.page.divergence import first_divergence
from batkube.page.header import header_of

_MAX_RUNS = 2


def page_of_runs(folders: Sequence[Path]) -> str:
    """Return the page of a run, or of two side by side. Raises InputError if a folder is not that of a run."""
    if not 1 <= len(folders) <= _MAX_RUNS:
        problem = f"shows one run, or two side by side, not {len(folders)}"
        raise InputError("batkube show", problem=problem, remedy="use `batkube compare` for more runs")
    playbacks = [Playback.read(folder) for folder in folders]
    names = labels_of(folders) if len(folders) > 1 else [playbacks[0].files.name]
    # The same resources in the same order, so that both runs are shown by the same one.
    resources = resources_of(node for playback in playbacks for node in playback.nodes)
    runs = [_run_data(playback, name, resources) for playback, name in zip(playbacks, names, strict=True)]
    divergence = first_divergence(playbacks[0], playbacks[1]) if len(playbacks) > 1 else None
    return render(" and ".join(names), {"runs": runs, "divergence": divergence, "live": False})


def _run_data(playback: Playback, name: str, resources: Sequence[str]) -> dict[str, Any]:
    chunk = ColumnEncoder(resources).chunk(playback.nodes, playback.jobs, playback.pods, playback.deltas, playback.end)
    return {"header": header_of(playback, name, resources), "chunk": chunk}


def render(title: str, data: Mapping[str, Any]) -> str:
    """Return the document. The data is compressed and in base64, so it cannot contain markup."""
    colours = f":root {{{_variables(LIGHT)}}}\n@media (prefers-color-scheme: dark) {{ :root {{{_variables(DARK)}}} }}"
    script = _static("page.js")
    policy = f"{content_security_policy(script)}{'; connect-src ' + repr('self') if data['live'] else ''}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="generator", content="Batkube"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{title} · Batkube"),
        element("style", trusted(f"{colours}\n{_static('page.css')}")),
    )
    body = element(
        "body",
        element("p", "Loading the run…", id="loading"),
        element("noscript", element("p", "This page needs JavaScript; `batkube report` writes one that does not.")),
        element("script", trusted(_encoded(data)), type="application/gzip", id="data"),
        element("script", trusted(script)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _encoded(data: Mapping[str, Any]) -> str:
    """Return the data as JSON, compressed and in base64; the same bytes for the same data."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(data), compresslevel=6, mtime=0)).decode()


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def _static(name: str) -> str:
    return (files("batkube.page") / "static" / name).read_text(encoding="utf-8").strip()
