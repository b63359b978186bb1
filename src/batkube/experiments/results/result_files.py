"""The results of an experiment, read back as a pandas frame, for reports and notebooks."""

from __future__ import annotations

import contextlib
import csv
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batkube.experiments.description.columns import RUN, STATE
from batkube.experiments.running.folder import DESCRIPTION_FILE, RESULTS_FILE, TIMINGS_FILE
from batkube.kernel.errors import InputError
from batkube.kernel.instants import as_float_s, duration
from batkube.outputs.measures.run_data.run_files import COUNT_PREFIX

if TYPE_CHECKING:
    import pandas as pd


def read_results(folder: str | Path) -> pd.DataFrame:
    """Return a row per finished run, in the order of the grid: results.csv joined with timings.csv.

    The column of an axis has numbers if all its labels are numbers, seconds if all are durations, and otherwise the
    labels. Counts are whole numbers. Failed runs have no numbers.
    """
    import pandas as pd

    # Names are text, also in a table without rows.
    frame = pd.DataFrame(typed_columns(Path(folder))).astype({RUN: str})
    frame = frame.astype({name: "Int64" for name in frame if str(name).startswith(COUNT_PREFIX)})
    timings = pd.read_csv(Path(folder) / TIMINGS_FILE, dtype={RUN: str})
    return frame.merge(timings, on=RUN, how="left", validate="one_to_one")


def typed_columns(folder: Path) -> dict[str, list[Any]]:
    """Return the columns of results.csv by name: numbers as numbers, None for empty cells."""
    axes = [axis["name"] for axis in read_description(folder)["axes"]]
    try:
        with (folder / RESULTS_FILE).open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
    except OSError as error:
        remedy = "run the experiment to its end, or resume it"
        raise InputError(folder / RESULTS_FILE, problem=f"cannot be read: {error.strerror}", remedy=remedy) from error
    columns = {name: [row[number] for row in rows] for number, name in enumerate(header)}
    return {
        name: texts if name in (RUN, STATE) else _typed_column(texts, may_be_text=name in axes)
        for name, texts in columns.items()
    }


def _typed_column(texts: list[str], *, may_be_text: bool) -> list[Any]:
    numbers = [label_as_number(text) for text in texts]
    return texts if may_be_text and None in numbers else numbers


def read_description(folder: Path) -> dict[str, Any]:
    """Return the content of experiment.json. Raises InputError."""
    path = folder / DESCRIPTION_FILE
    try:
        content = json.loads(path.read_bytes())
    except OSError:
        problem = "is not the folder of an experiment"
        raise InputError(folder, problem=problem, remedy="use the --out of `batkube experiment`") from None
    except ValueError as error:
        raise InputError(path, problem=f"cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(path, problem="is not a JSON object")
    return content


def label_as_number(label: str) -> float | None:
    """Return a label as a number, a duration in seconds; None for any other text."""
    for parse in (int, float, lambda text: as_float_s(duration(text))):
        with contextlib.suppress(ValueError, OverflowError):
            number = parse(label)
            return number if math.isfinite(number) else None
    return None
