"""Jobs of a fixed length for runs, and their rows in jobs.csv."""

from __future__ import annotations

from typing import TYPE_CHECKING

import batkube

if TYPE_CHECKING:
    import pandas as pd

DELAY_10 = {"d10": {"type": "delay", "delay": 10}}


def a_job(name: str, subtime: float = 0, res: int = 1, profile: str = "d10", **more: object) -> dict[str, object]:
    return {"id": name, "subtime": subtime, "res": res, "profile": profile, **more}


def row(run: batkube.Run, name: str) -> pd.Series[float]:
    jobs = run.jobs
    return jobs[jobs["job_id"] == name].iloc[0]
