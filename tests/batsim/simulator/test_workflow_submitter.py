"""Workflows (`-W`): our Batsim and the real one submit a task when its predecessors have ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.batsim.simulator.simulations import DELAY, Decision, EitherBatsim, on_first_machines

from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.formats.batsim.dax import read_dax

#: One task, then two, of which one uses two machines, then a task after both.
DIAMOND = """<adag xmlns="http://pegasus.isi.edu/schema/DAX">
  <job id="a" runtime="5"/><job id="b" runtime="2.5" num_procs="2"/><job id="c" runtime="4"/><job id="d" runtime="1"/>
  <child ref="b"><parent ref="a"/></child><child ref="c"><parent ref="a"/></child>
  <child ref="d"><parent ref="b"/><parent ref="c"/></child>
</adag>"""


class FirstFit:
    """Executes each job on free machines."""

    def __init__(self, *, rejects: str = "") -> None:
        self._rejects = rejects
        self._free = [0, 1, 2, 3]
        self._running: dict[str, list[int]] = {}

    def __call__(self, kind: str, data: Mapping[str, Any]) -> list[Decision]:
        if kind == "JOB_COMPLETED":
            self._free = sorted(self._free + self._running.pop(data["job_id"]))
        if kind != "JOB_SUBMITTED":
            return []
        if data["job_id"] == self._rejects:
            return [("REJECT_JOB", {"job_id": data["job_id"]})]
        size = data["job"]["res"]
        machines, self._free = self._free[:size], self._free[size:]
        self._running[data["job_id"]] = machines
        return [("EXECUTE_JOB", {"job_id": data["job_id"], "alloc": " ".join(map(str, machines))})]


@pytest.fixture
def diamond(tmp_path: Path) -> str:
    path = tmp_path / "diamond.dax"
    path.write_text(DIAMOND)
    return str(path)


def dates(batsim: EitherBatsim) -> dict[str, tuple[float, float]]:
    return {row["profile"]: (float(row["submission_time"]), float(row["finish_time"])) for row in batsim.rows}


def test_a_task_is_submitted_when_all_its_predecessors_have_ended(batsim: EitherBatsim, diamond: str) -> None:
    events = batsim([], {}, "-W", diamond, react=FirstFit())

    assert dates(batsim) == {"wf0_a": (0, 5), "wf0_b": (5, 7.5), "wf0_c": (5, 9), "wf0_d": (9, 10)}
    first = next(data for _, kind, data in events if kind == "JOB_SUBMITTED")
    assert first["job"] == {"id": "wf0!0", "subtime": 0, "walltime": 15, "res": 1, "profile": "wf0_a"}


def test_the_number_of_simultaneous_jobs_of_a_workflow_can_be_limited(batsim: EitherBatsim, diamond: str) -> None:
    batsim([], {}, "-W", diamond, "--workflow-jobs-limit", "1", react=FirstFit())

    assert dates(batsim) == {"wf0_a": (0, 5), "wf0_b": (5, 7.5), "wf0_c": (7.5, 11.5), "wf0_d": (11.5, 12.5)}


def test_two_workflows_and_a_workload_are_submitted_concurrently(batsim: EitherBatsim, diamond: str) -> None:
    options = ("-W", diamond, "-W", diamond, "--enable-compute-sharing", "--workflow-jobs-limit", "1")

    batsim([{"profile": "delay", "subtime": 1}], {"delay": DELAY}, *options, react=on_first_machines)

    assert [row["workload_name"] for row in batsim.rows].count("wf1") == 4
    assert {row["finish_time"] for row in batsim.rows if row["profile"].endswith("_d")} == {"12.500000"}


def test_jobs_after_the_last_workflow_can_be_ignored(batsim: EitherBatsim, diamond: str) -> None:
    jobs = [{"profile": "delay", "subtime": 1}, {"profile": "delay", "subtime": 30}]

    batsim(jobs, {"delay": DELAY}, "-W", diamond, "--ignore-beyond-last-workflow", react=FirstFit())

    assert not batsim.failure
    assert [row["job_id"] for row in batsim.rows if row["workload_name"] == "w0"] == ["0"]


def test_a_workflow_never_ends_if_one_of_its_jobs_is_rejected(batsim: EitherBatsim, diamond: str) -> None:
    events = batsim([], {}, "-W", diamond, react=FirstFit(rejects="wf0!1"))

    assert "SIMULATION_ENDS" not in [kind for _, kind, _ in events]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<adag>", "broken XML"),
        ("<platform/>", "begins with <platform>"),
        ('<adag><job id="a" runtime="x"/></adag>', "the runtime 'x' is not a number of seconds"),
        ('<adag><job id="a"/><child ref="b"/></adag>', "refers to the job 'b', which is not defined before"),
        (
            '<adag><job id="a"/><child ref="a"><parent ref="a"/></child></adag>',
            "has a dependency cycle that blocks 1 tasks",
        ),
    ],
)
def test_an_invalid_workflow_file_is_an_input_error(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.dax"
    path.write_text(text)

    with pytest.raises(InputError, match=problem):
        read_dax(path, "wf0")


def test_tasks_are_sorted_by_id_and_an_invalid_number_of_machines_counts_as_one(tmp_path: Path) -> None:
    path = tmp_path / "w.dax"
    path.write_text('<adag><job id="b" runtime="1.5" num_procs="-2"/><job id="a"/></adag>')

    workflow = read_dax(path, "wf0")

    assert [(task.id, task.run_time, task.size) for task in workflow.tasks.values()] == [
        ("a", 0, 1),
        ("b", seconds(1.5), 1),
    ]
