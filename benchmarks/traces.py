"""The workloads of the benchmarks, in a form that gives two simulators exactly the same jobs."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

_FIELDS = 18
_RUN_TIME, _USED_PROCESSORS, _REQUESTED_PROCESSORS, _REQUESTED_TIME = 3, 4, 7, 8
_MEMORY_FIELDS = (6, 9)


def plain_swf(source: Path, target: Path, jobs_max: int | None) -> int:
    """Write the usable jobs of an SWF file to `target`, and return their number.

    Jobs without a run time or processors are omitted, since simulators treat them differently. Run times are limited to
    the requested time, at which Batkube kills jobs and AccaSim does not. Memory is removed; only processors count.
    """
    content = source.read_bytes()
    text = (gzip.decompress(content) if source.suffix == ".gz" else content).decode(errors="replace")
    jobs = [job for line in text.splitlines() if (job := _plain_job(line))][:jobs_max]
    target.write_text("".join(f"{job}\n" for job in jobs))
    return len(jobs)


def _plain_job(line: str) -> str:
    fields = line.split()
    if line.lstrip().startswith(";") or len(fields) < _FIELDS:
        return ""
    processors = max(int(fields[_REQUESTED_PROCESSORS]), int(fields[_USED_PROCESSORS]))
    run_s, requested_s = int(fields[_RUN_TIME]), int(fields[_REQUESTED_TIME])
    if run_s <= 0 or processors <= 0:
        return ""
    fields[_USED_PROCESSORS] = fields[_REQUESTED_PROCESSORS] = str(processors)
    fields[_REQUESTED_TIME] = str(requested_s if requested_s > 0 else run_s)
    fields[_RUN_TIME] = str(min(run_s, int(fields[_REQUESTED_TIME])))
    for field in _MEMORY_FIELDS:
        fields[field] = "-1"
    return " ".join(fields)


def delay_jobs(target: Path, jobs: int, hosts: int) -> int:
    """Write a Batsim workload of delay jobs that keep `hosts` hosts about 85 % busy, and return their number.

    The load does not depend on `jobs`, so the cost per job should not either.
    """
    stream = random.Random(20200817)
    sizes = (1, 1, 2, 4, 8, 16)
    delays_s = tuple(range(30, 601, 10))
    work_s = sum(sizes) / len(sizes) * sum(delays_s) / len(delays_s)
    now_s = 0.0
    rows = []
    for number in range(jobs):
        now_s += stream.expovariate(0.85 * hosts / work_s)
        delay_s = stream.choice(delays_s)
        rows.append(
            {
                "id": str(number),
                "subtime": round(now_s, 3),
                "res": stream.choice(sizes),
                "profile": f"delay{delay_s}",
                "walltime": delay_s * stream.choice((1, 2, 4)) + 1,
            }
        )
    profiles = {f"delay{delay_s}": {"type": "delay", "delay": delay_s} for delay_s in delays_s}
    target.write_text(json.dumps({"nb_res": hosts, "jobs": rows, "profiles": profiles}))
    return jobs
