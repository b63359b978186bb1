"""Workflows (`-W`): tasks that are submitted when those before them have ended, by ours and by the real Batsim."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.batsim.test_our_batsim import Decision
from tests.batsim.test_ways_of_batsim import DELAY, Play, play

from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.formats.batsim.dax import read_dax

__all__ = ["play"]  # the fixture
#: One task, then two, one of them on two machines, then one that waits for both.
DIAMOND = """<adag xmlns="http://pegasus.isi.edu/schema/DAX">
  <job id="a" runtime="5"/><job id="b" runtime="2.5" num_procs="2"/><job id="c" runtime="4"/><job id="d" runtime="1"/>
  <child ref="b"><parent ref="a"/></child><child ref="c"><parent ref="a"/></child>
  <child ref="d"><parent ref="b"/><parent ref="c"/></child>
</adag>"""


class FirstFit:
    """Starts each job on machines that are free."""

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
        mine, self._free = self._free[:size], self._free[size:]
        self._running[data["job_id"]] = mine
        return [("EXECUTE_JOB", {"job_id": data["job_id"], "alloc": " ".join(map(str, mine))})]


@pytest.fixture
def diamond(tmp_path: Path) -> str:
    path = tmp_path / "diamond.dax"
    path.write_text(DIAMOND)
    return str(path)


def times(play: Play) -> dict[str, tuple[float, float]]:
    return {row["profile"]: (float(row["submission_time"]), float(row["finish_time"])) for row in play.rows}


def test_a_task_is_submitted_when_all_before_it_have_ended(play: Play, diamond: str) -> None:
    events = play([], {}, "-W", diamond, react=FirstFit())

    assert times(play) == {"wf0_a": (0, 5), "wf0_b": (5, 7.5), "wf0_c": (5, 9), "wf0_d": (9, 10)}
    first = next(data for _, kind, data in events if kind == "JOB_SUBMITTED")
    assert first["job"] == {"id": "wf0!0", "subtime": 0, "walltime": 15, "res": 1, "profile": "wf0_a"}


def test_few_tasks_of_a_workflow_at_once(play: Play, diamond: str) -> None:
    play([], {}, "-W", diamond, "--workflow-jobs-limit", "1", react=FirstFit())

    assert times(play) == {"wf0_a": (0, 5), "wf0_b": (5, 7.5), "wf0_c": (7.5, 11.5), "wf0_d": (11.5, 12.5)}


def test_two_workflows_and_a_workload_arrive_side_by_side(play: Play, diamond: str) -> None:
    options = ("-W", diamond, "-W", diamond, "--enable-compute-sharing", "--workflow-jobs-limit", "1")

    play([{"profile": "delay", "subtime": 1}], {"delay": DELAY}, *options, react=on_machine_of_size)

    assert [row["workload_name"] for row in play.rows].count("wf1") == 4
    assert {row["finish_time"] for row in play.rows if row["profile"].endswith("_d")} == {"12.500000"}


def on_machine_of_size(kind: str, data: Mapping[str, Any]) -> list[Decision]:
    if kind != "JOB_SUBMITTED":
        return []
    return [("EXECUTE_JOB", {"job_id": data["job_id"], "alloc": f"0-{data['job']['res'] - 1}"})]


def test_nobody_hears_of_jobs_beyond_the_workflow_if_they_are_to_be_ignored(play: Play, diamond: str) -> None:
    jobs = [{"profile": "delay", "subtime": 1}, {"profile": "delay", "subtime": 30}]

    play(jobs, {"delay": DELAY}, "-W", diamond, "--ignore-beyond-last-workflow", react=FirstFit())

    assert not play.failure
    assert [row["job_id"] for row in play.rows if row["workload_name"] == "w0"] == ["0"]


def test_a_workflow_waits_for_ever_for_a_job_that_is_rejected(play: Play, diamond: str) -> None:
    events = play([], {}, "-W", diamond, react=FirstFit(rejects="wf0!1"))

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
def test_a_file_that_is_no_workflow_is_an_input_error(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.dax"
    path.write_text(text)

    with pytest.raises(InputError, match=problem):
        read_dax(path, "wf0")


def test_tasks_have_the_order_of_their_ids_and_what_is_no_number_of_machines_is_one(tmp_path: Path) -> None:
    path = tmp_path / "w.dax"
    path.write_text('<adag><job id="b" runtime="1.5" num_procs="-2"/><job id="a"/></adag>')

    workflow = read_dax(path, "wf0")

    assert [(task.id, task.run_time, task.size) for task in workflow.tasks.values()] == [
        ("a", 0, 1),
        ("b", seconds(1.5), 1),
    ]
