"""Pods without a row in jobs.csv: those of Deployments and similar controllers, bare pods, pods of unfinished Jobs.

The pods of one owner are a *service*. In charts, a service is a row like a job, with the columns of `jobs_frame`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from batkube.outputs.measures.occupancy.stays import Stays, capacity_of, horizon_s, machine_ids_of
from batkube.outputs.measures.run_data.jobs_frame import NUMBER_COLUMNS, TEXT_COLUMNS
from batkube.outputs.measures.run_data.run_files import RunFiles

#: Final state in the row of a service.
SERVICE_STATE = "SERVICE"
#: pods.csv does not have the requests of such a pod: it is drawn as a tenth of its machine.
_SHARE = 10


def services_of(results: RunFiles) -> tuple[pd.DataFrame, Stays]:
    """Return a row for each service, and the stays of their pods, which refer to the rows by number."""
    pods = _pods_of_no_job(results)
    names = pods["owner"].where(pods["owner"] != "", pods["pod"])
    owners = list(dict.fromkeys(names))
    row_of = {owner: row for row, owner in enumerate(owners)}
    rows = np.array([row_of[name] for name in names], dtype=np.int64)
    machine, capacity = machine_ids_of(results, pods), capacity_of(results)
    begin = pods["started"].to_numpy(dtype=np.float64)
    end = pods["finished"].fillna(_end_s(results)).to_numpy(dtype=np.float64)
    milli = np.maximum(capacity[machine] // _SHARE, 1)
    lost = np.zeros(len(pods), dtype=np.bool_)
    return _frame(owners), Stays(rows, machine, machine, begin, end, milli, lost, capacity)


def _pods_of_no_job(results: RunFiles) -> pd.DataFrame:
    """Return the pods that ran on a known machine and do not belong to a job in jobs.csv."""
    if results.left_out("pods.csv") and not results.manifest.get("objects"):
        return pd.DataFrame({name: [] for name in ("pod", "owner", "node", "machine", "started", "finished")})
    jobs, pods = results.jobs, results.pods
    if "owner" not in pods:
        return pods[:0].assign(owner="")
    job_keys = set(zip(jobs["workload_name"], jobs["job_id"], strict=True))
    keys = zip(pods["workload_name"], pods["job_id"], strict=True)
    is_other = np.array([key not in job_keys for key in keys], dtype=np.bool_)
    # Unlike pods of an unfinished Job object, unfinished pods of a workload's job are not a service.
    is_other &= (pods["job_id"] == "").to_numpy() | (pods["owner"] != "").to_numpy()
    machine = machine_ids_of(results, pods)
    placed = (machine >= 0) & (machine < results.machine_count) & pods["started"].notna().to_numpy()
    return pods[is_other & placed]


def _end_s(results: RunFiles) -> float:
    return float(results.manifest.get("end_s") or horizon_s(results.jobs))


def _frame(owners: list[str]) -> pd.DataFrame:
    empty: dict[str, object] = dict.fromkeys(TEXT_COLUMNS, "") | dict.fromkeys(NUMBER_COLUMNS, np.nan)
    return pd.DataFrame(empty, index=range(len(owners))).assign(
        job_id=[owner.partition("/")[2] or owner for owner in owners],
        profile=[owner.partition("/")[0] if "/" in owner else "Pod" for owner in owners],
        final_state=SERVICE_STATE,
    )
