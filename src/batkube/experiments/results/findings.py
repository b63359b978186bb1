"""An experiment's folder, read back for a report: description, runs, and their numbers as one frame.

Values of axes are labels (text), in the experiment's order; figures and tables decide which ones are numeric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batkube.experiments.description.columns import DIGEST, RUN, STATE, number_columns
from batkube.experiments.results.result_files import read_description
from batkube.experiments.running.folder import RESULTS_FILE, TIMINGS_FILE, RunState, run_folder
from batkube.outputs.files.manifest import read_manifest
from batkube.outputs.measures.metric_columns import COMPLETED
from batkube.outputs.measures.run_data.text_table import read_table
from batkube.outputs.results import Results
from batkube.text.suggestions import check_names

if TYPE_CHECKING:
    import pandas as pd

#: The option that selects the baseline, for messages.
_BASELINE = "--baseline"


@dataclass(frozen=True)
class Findings:
    """The results of an experiment so far."""

    folder: Path
    #: The content of experiment.json.
    description: dict[str, Any]
    #: Labels of the point from which differences are counted, by axis; empty for the first one of each task.
    baseline: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the experiment, or else its folder's name."""
        return str(self.description.get("title") or self.folder.resolve().name)

    @property
    def file(self) -> Path:
        """The experiment file; paths of published data are relative to its folder."""
        return Path(str(self.description.get("file") or "experiment"))

    @cached_property
    def axes(self) -> dict[str, list[str]]:
        """The labels of each axis, in the experiment's order."""
        return {
            str(axis["name"]): [str(value) for value in axis["values"]] for axis in self.description.get("axes") or ()
        }

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The entries of finished runs in experiment.json."""
        return list(self.description.get("runs") or ())

    @property
    def failed_runs(self) -> list[dict[str, Any]]:
        """The runs that failed."""
        return [run for run in self.runs if run.get("state") == RunState.FAILED]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row per run: run, axes (text), seed, repeat, state, and all numbers, NaN if unknown."""
        import pandas as pd

        frame = self._read(RESULTS_FILE)
        if (self.folder / TIMINGS_FILE).is_file():
            frame = frame.merge(self._read(TIMINGS_FILE), on=RUN, how="left", validate="one_to_one")
        digests = {str(run.get("run")): str(run.get("digest") or "") for run in self.runs}
        frame[DIGEST] = pd.Series([digests.get(run, "") for run in frame[RUN]], dtype=object)
        frame[COMPLETED] = (frame[STATE] == RunState.DONE).astype("float64")
        missing = {name: float("nan") for name in number_columns() if name not in frame}
        return frame.assign(**missing)

    def results(self, run: str) -> Results:
        """Return the outputs of one run. Raises InputError if there are none."""
        return Results(self.run_folder(run))

    def run_folder(self, run: str) -> Path:
        """Return the output folder of a run."""
        return run_folder(self.folder, run)

    def manifest(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """Return the manifest of an entry of `runs`; empty if its folder is missing."""
        return read_manifest(self.run_folder(str(run.get("run"))))

    def _read(self, name: str) -> pd.DataFrame:
        import pandas as pd

        table = read_table(self.folder / name)
        table.require((RUN,), "use the --out of `batkube experiment`")
        texts = (RUN, STATE, *self.axes)
        return pd.DataFrame(
            {column: table.text(column) if column in texts else table.numbers(column) for column in table.columns}
        )


def read_findings(folder: Path, baseline: Mapping[str, str] | None = None) -> Findings:
    """Return the findings in an experiment's folder. Raises InputError, also if it lacks the baseline."""
    findings = Findings(folder, read_description(folder), dict(baseline or {}))
    check_names(findings.baseline, findings.axes, _BASELINE, "", "an axis")
    for axis, label in findings.baseline.items():
        check_names([label], findings.axes[axis], _BASELINE, axis, f"a value of {axis}")
    return findings
