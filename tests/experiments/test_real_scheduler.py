"""An experiment with the real kube-scheduler, killed and resumed; opt-in, because it takes long."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from tests.cli.commands.test_experiment import finish, finished_runs, start, wait_until
from tests.experiments.conftest import Study

from opt_in import slow

SCHEDULER = "kube-scheduler@1.34.4"

pytestmark = slow("runs the real kube-scheduler many times")


def children(pid: int) -> list[int]:
    """Return the processes that any thread of a process has started."""
    pids: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += map(int, listing.read_text().split())
    return pids


def schedulers_of(experiment: int) -> list[int]:
    return [scheduler for worker in children(experiment) for scheduler in children(worker)]


def test_a_killed_experiment_leaves_no_scheduler_running_and_resumes_to_the_same_bytes(study: Study) -> None:
    workload = Path(__file__).resolve().parents[2] / "examples" / "burst" / "workload.json"
    study.file(base={"workload": str(workload), "platform": "16x1,4Gi", "scheduler": SCHEDULER}, seeds=4)

    process = start(study, "--out", "out")
    wait_until(lambda: len(finished_runs(study.out)) >= 1 and bool(schedulers_of(process.pid)))
    schedulers = schedulers_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    again, whole = finish(study, "--out", "out"), finish(study, "--out", "uninterrupted")

    assert (again.returncode, whole.returncode) == (0, 0), again.stderr + whole.stderr
    assert not [pid for pid in schedulers if Path(f"/proc/{pid}").exists()]
    uninterrupted = study.folder / "uninterrupted"
    assert (study.out / "results.csv").read_bytes() == (uninterrupted / "results.csv").read_bytes()
    for folder in finished_runs(study.out):
        other = uninterrupted / "runs" / folder.name
        assert (folder / "journal.jsonl").read_bytes() == (other / "journal.jsonl").read_bytes()
