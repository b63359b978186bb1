"""The served page of finished runs: the page itself, and its answers about jobs, pods and nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from batkube.outputs.playback.playback import Playback
from batkube.page.answers import Answer, NoAnswer, text_answer
from batkube.page.document import check_number_of_runs, page_of_playbacks
from batkube.page.explanations import Explanations
from batkube.page.manifests import recorded_job_yaml, recorded_node_yaml, recorded_pod_yaml
from batkube.page.server import PageResource


def resources_of_runs(folders: Sequence[Path]) -> dict[str, PageResource]:
    """Return what the server of the page of one or two runs serves. Raises InputError."""
    check_number_of_runs(folders)
    playbacks = [Playback.read(folder) for folder in folders]
    page = page_of_playbacks(playbacks, folders, is_served=True).encode()
    runs = [_RunAnswers(*run) for run in zip(playbacks, folders, strict=True)]

    def run_of(parameters: Mapping[str, str]) -> _RunAnswers:
        return runs[1 if parameters.get("run") == "1" and len(runs) > 1 else 0]

    return {
        "": lambda _: ("text/html; charset=utf-8", page),
        "yaml": lambda parameters: run_of(parameters).yaml(parameters),
        "explain": lambda parameters: run_of(parameters).explanation(parameters),
    }


class _RunAnswers:
    """Answers about one run."""

    def __init__(self, playback: Playback, folder: Path) -> None:
        self._playback = playback
        self._explanations = Explanations(folder)

    def yaml(self, parameters: Mapping[str, str]) -> Answer:
        """Return a job, a pod or a node as YAML."""
        return text_answer(lambda: self._yaml(parameters.get("kind", ""), parameters.get("number", "")))

    def explanation(self, parameters: Mapping[str, str]) -> Answer:
        """Return the explanation of a job, a pod or a node."""
        return text_answer(lambda: self._explanations.text_of(parameters))

    def _yaml(self, kind: str, number: str) -> str:
        playback = self._playback
        rows = {"job": len(playback.jobs), "pod": len(playback.pods), "node": len(playback.nodes)}
        if not (number.isascii() and number.isdecimal() and int(number) < rows.get(kind, 0)):
            raise NoAnswer(f"this run has no {kind or 'object'} of the number {number}")
        match kind:
            case "job":
                return recorded_job_yaml(playback.jobs[int(number)])
            case "pod":
                return recorded_pod_yaml(playback.pods[int(number)])
            case _:
                return recorded_node_yaml(playback.nodes[int(number)])
