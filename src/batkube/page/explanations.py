"""The texts of `batkube explain` for a page, computed when they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from batkube.outputs.explain.explanation import Explainer
from batkube.outputs.explain.text import lines_of


class Explanations:
    """Explains the jobs, pods and nodes of one run. The folder is read at the first question."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._explainer: Explainer | None = None
        self._lock = threading.Lock()

    def text_of(self, parameters: Mapping[str, str]) -> str:
        """Return the explanation of the job, pod or node `name`. Raises InputError."""
        with self._lock:
            if self._explainer is None:
                self._explainer = Explainer(self._folder)
            return "\n".join(lines_of(self._explainer.explain(parameters.get("name", ""))))
